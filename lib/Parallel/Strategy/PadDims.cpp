// Pads vocabularies that tensor parallelism would split, but that its ranks do
// not divide.

#include "ChooseDims.h"
#include "DimPadder.h"
#include "dialects/NN/Entry.h"
#include "lib/Parallel/Passes.h"
#include "lib/Parallel/States/SharingAxes.h"

using namespace mlir;

namespace accel::parallel {
#define GEN_PASS_DEF_PADDIMSPASS
#include "lib/Parallel/Passes.h.inc"

/// A dimension with more padding than one part in this is left whole.
static constexpr int64_t kLeastParts = 4;

namespace {
struct PadDimsPass : impl::PadDimsPassBase<PadDimsPass> {
  using Base::Base;

  void runInOrder() override {
    ModuleOp module = getOperation();
    dist::MeshOp mesh = dist::MeshOp::of(module);
    int64_t ranks = countTensorRanks(mesh);
    auto found = nn::requireEntries(module);
    if (failed(found))
      return signalPassFailure();
    SmallVector<func::FuncOp> entries = std::move(*found);
    func::FuncOp chosenOn = nn::findEntry(module, nn::EntryKind::step);
    if (!chosenOn && !entries.empty())
      chosenOn = entries.front();
    if (ranks == 1 || !chosenOn)
      return;
    int64_t sharers = stage > 0 ? countSharers(mesh) : 1;
    DimChooser chooser(chosenOn, mesh);
    chooser.run(vocabulary);
    SmallVector<StateDim> wanted;
    for (auto [argument, dim, size, isVocabulary] : chooser.getUneven()) {
      // Heads and widths are the model's own, and few.
      if (!isVocabulary)
        continue;
      // So that whoever shares states need not pad them again.
      int64_t padded = llvm::alignTo(size, ranks * sharers);
      if (cast<RankedTensorType>(argument.getType()).getDimSize(dim) == size &&
          (padded - size) * kLeastParts <= size)
        wanted.push_back({getState(chosenOn, argument), dim, size, padded});
    }
    for (const StateDim &each : wanted)
      pad(entries, each);
  }

  /// In all entries, or in none.
  void pad(ArrayRef<func::FuncOp> entries, const StateDim &which) {
    SymbolTable symbols(getOperation());
    std::vector<DimPadder> padders;
    llvm::MapVector<Attribute, RankedTensorType> states;
    for (func::FuncOp entry : entries) {
      padders.emplace_back(entry, which);
      if (!padders.back().canPad())
        return;
      for (auto &[state, type] : padders.back().states) {
        auto [known, isNew] = states.insert({state, type});
        if (!isNew && known->second != type)
          return;
      }
    }
    // Each entry that reads a state must have it padded.
    for (auto [each, padder] : llvm::zip_equal(entries, padders)) {
      func::FuncOp entry = each;
      for (BlockArgument argument : entry.getArguments())
        if (Attribute state = getState(entry, argument);
            state && states.contains(state) && !padder.states.contains(state))
          return;
    }
    for (auto &[name, type] : states)
      if (symbols.lookup<nn::StateOp>(cast<FlatSymbolRefAttr>(name).getAttr())
              .getLogical())
        return;
    for (DimPadder &padder : padders)
      padder.pad();
    for (auto &[name, type] : states) {
      auto state =
          symbols.lookup<nn::StateOp>(cast<FlatSymbolRefAttr>(name).getAttr());
      auto logical = cast<RankedTensorType>(state.getType());
      state.setLogicalAttr(
          DenseI64ArrayAttr::get(&getContext(), logical.getShape()));
      state.setType(type);
    }
  }
};
} // namespace
} // namespace accel::parallel
