// The contract at the end of phase 2.

#include "Passes.h"
#include "dialects/Accel/Reports.h"
#include "dialects/NN/Entry.h"
#include "dialects/NN/Update.h"

#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;

namespace accel::autodiff {
#define GEN_PASS_DEF_VERIFYSTEPPASS
#include "lib/Autodiff/Passes.h.inc"

namespace {

/// Checks one entry; each check emits its errors and says whether it held.
class Verifier {
public:
  Verifier(ModuleOp module, func::FuncOp entry)
      : module(module), entry(entry) {}

  bool verify() {
    collectWrites();
    bool valid = verifyOps();
    valid = verifyKinds() && valid;
    valid = verifyNames() && valid;
    std::optional<nn::EntryKind> kind = nn::getEntryKind(entry);
    if (kind == nn::EntryKind::eval)
      valid = verifyOutputs(kLossReport) && valid;
    if (kind == nn::EntryKind::step) {
      valid = verifyReports() && valid;
      valid = verifyWrites() && valid;
      return verifyMarkers() && valid;
    }
    for (auto &[state, value] : writes)
      if (state.getRole() == nn::StateRole::parameter) {
        entry.emitOpError() << "writes parameter '" << state.getSymName()
                            << "', expected only a step to";
        valid = false;
      }
    return valid;
  }

private:
  void collectWrites() {
    Operation *terminator = entry.getBody().front().getTerminator();
    SymbolTable symbols(module);
    for (unsigned index = 0; index < entry.getNumResults(); ++index)
      if (auto symbol = entry.getResultAttrOfType<FlatSymbolRefAttr>(
              index, nn::kStateAttr))
        writes.emplace_back(symbols.lookup<nn::StateOp>(symbol.getAttr()),
                            terminator->getOperand(index));
  }

  /// Accumulators arise where micro-batches do.
  bool verifyKinds() {
    bool valid = true;
    for (unsigned index = 0; index < entry.getNumResults(); ++index) {
      if (!entry.getResultAttr(index, nn::kStateAttr))
        continue;
      auto kind =
          entry.getResultAttrOfType<nn::WriteKindAttr>(index, nn::kWriteAttr);
      if (!kind || kind.getValue() == nn::WriteKind::step)
        continue;
      entry.emitOpError() << "expected a state's new value, result " << index
                          << ", to be written once, in the step, found '"
                          << nn::kWriteAttr << "' = " << kind;
      valid = false;
    }
    return valid;
  }

  bool verifyOps() {
    bool valid = true;
    entry.walk([&](Operation *op) {
      if (isa<nn::DropoutOp, nn::RngOp>(op)) {
        op->emitOpError() << "draws anew in every step of training, expected "
                             "--train or a model exported for inference";
        valid = false;
      } else if (isa<nn::BatchNormOp>(op)) {
        op->emitOpError() << "takes statistics of the batch in training and "
                             "running ones elsewhere, expected --train or a "
                             "model exported for inference";
        valid = false;
      } else if (isa<nn::StopGradientOp>(op)) {
        op->emitOpError() << "means something only where gradients are built, "
                             "expected --train";
        valid = false;
      }
    });
    return valid;
  }

  /// No two results have one name.
  bool verifyNames() {
    bool valid = true;
    llvm::StringSet<> seen;
    for (unsigned index = 0; index < entry.getNumResults(); ++index) {
      auto name = entry.getResultAttrOfType<StringAttr>(index, nn::kOutputAttr);
      if (!name || seen.insert(name).second)
        continue;
      entry.emitOpError() << "gives output " << name << " twice";
      valid = false;
    }
    return valid;
  }

  /// There are numbers of these names, the verdict an i32.
  bool verifyOutputs(ArrayRef<StringRef> names) {
    llvm::StringMap<Type> found;
    for (unsigned index = 0; index < entry.getNumResults(); ++index)
      if (auto name =
              entry.getResultAttrOfType<StringAttr>(index, nn::kOutputAttr)) {
        auto type = cast<RankedTensorType>(entry.getResultTypes()[index]);
        if (type.getRank() == 0)
          found[name] = type.getElementType();
      }
    bool valid = true;
    for (StringRef name : names) {
      Type type = found.lookup(name);
      bool isVerdict = name == kVerdictReport;
      if (type && (isVerdict ? type.isInteger(32) : type.isIntOrFloat()))
        continue;
      auto error = entry.emitOpError()
                   << "expected a scalar output '" << name << "'"
                   << (isVerdict ? " of type i32" : "") << ", found ";
      if (type)
        error << "one of type " << type;
      else
        error << "none";
      valid = false;
    }
    return valid;
  }

  /// The step says how it went by what the module lists.
  bool verifyReports() {
    auto names = module->getAttrOfType<ArrayAttr>(kReportsAttr);
    if (names)
      return verifyOutputs(
          llvm::to_vector(names.getAsValueRange<StringAttr>()));
    entry.emitOpError() << "expected a module that lists what its step reports "
                           "in '"
                        << kReportsAttr << "', found none";
    return false;
  }

  bool verifyWrites() {
    bool valid = true;
    llvm::SmallPtrSet<Operation *, 8> seen;
    for (auto &[state, value] : writes) {
      if (!seen.insert(state).second) {
        entry.emitOpError()
            << "writes state '" << state.getSymName() << "' twice";
        valid = false;
      }
      if (state.getFrozen()) {
        entry.emitOpError()
            << "writes state '" << state.getSymName() << "', which is frozen";
        valid = false;
      }
      if (state.getType() != value.getType()) {
        entry.emitOpError()
            << "writes " << value.getType() << " to state '"
            << state.getSymName() << "', expected " << state.getType();
        valid = false;
      }
    }
    for (auto state : module.getOps<nn::StateOp>())
      if ((state.getRole() == nn::StateRole::moment ||
           state.getRole() == nn::StateRole::residual ||
           state.getRole() == nn::StateRole::factor ||
           state.getRole() == nn::StateRole::counter ||
           state.getRole() == nn::StateRole::scaler) &&
          !seen.contains(state)) {
        state.emitOpError() << "is not written by the step";
        valid = false;
      }
    return valid;
  }

  /// Parameters that are written have one marker each; between a marker and
  /// the inputs of the program stand no other markers.
  bool verifyMarkers() {
    bool valid = true;
    llvm::StringMap<nn::GradientOp> markers;
    llvm::DenseSet<Operation *> update = nn::getUpdateOps(entry);
    for (auto marker : entry.getBody().front().getOps<nn::GradientOp>()) {
      if (update.contains(marker.getInput().getDefiningOp())) {
        marker.emitOpError() << "marks a value of the update, expected one of "
                                "forward and backward";
        valid = false;
      }
      if (!markers.try_emplace(marker.getState(), marker).second) {
        marker.emitOpError()
            << "is a second gradient of '" << marker.getState() << "'";
        valid = false;
      }
    }
    for (auto &[state, value] : writes)
      if (state.getRole() == nn::StateRole::parameter &&
          !markers.contains(state.getSymName())) {
        entry.emitOpError() << "writes parameter '" << state.getSymName()
                            << "' without a gradient of it";
        valid = false;
      }
    return valid;
  }

  ModuleOp module;
  func::FuncOp entry;
  /// The states that results are new values of.
  SmallVector<std::pair<nn::StateOp, Value>> writes;
};

struct VerifyStepPass : impl::VerifyStepPassBase<VerifyStepPass> {
  using Base::Base;

  void runOnOperation() override {
    auto entries = nn::requireEntries(getOperation());
    if (failed(entries))
      return signalPassFailure();
    for (func::FuncOp entry : *entries)
      if (!Verifier(getOperation(), entry).verify())
        signalPassFailure();
  }
};

} // namespace
} // namespace accel::autodiff
