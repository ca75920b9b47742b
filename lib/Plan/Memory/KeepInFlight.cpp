// Finds how many micro-batches a buffer must keep apart, from the run list
// alone: whatever schedule wrote it.

#include "InFlight.h"

#include "lib/Cost/Decision.h"
#include "lib/Plan/BufferTable.h"
#include "lib/Plan/Passes.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;

namespace accel::plan {
#define GEN_PASS_DEF_KEEPINFLIGHTPASS
#include "lib/Plan/Passes.h.inc"

namespace {
struct KeepInFlightPass : impl::KeepInFlightPassBase<KeepInFlightPass> {
  using Base::Base;

  void runOnOperation() override {
    for (auto program : getOperation().getOps<ProgramOp>())
      for (auto entry : program.getOps<EntryOp>())
        runOnEntry(program, entry);
  }

  void runOnEntry(ProgramOp program, EntryOp entry) {
    InFlight inFlight(entry);
    BufferTable buffers(program);
    llvm::MapVector<BufferOp, SmallVector<BodyUse, 4>> users;
    llvm::DenseSet<std::pair<BufferOp, StringAttr>> writers;
    for (auto body : program.getOps<BodyOp>()) {
      auto note = [&](ArrayRef<ViewAttr> views, bool writes) {
        for (ViewAttr view : views) {
          BufferOp buffer = buffers.lookup(view);
          SmallVector<BodyUse, 4> &list = users[buffer];
          if (writes)
            writers.insert({buffer, body.getSymNameAttr()});
          bool whole = writes && view.isContiguous() &&
                       view.getSpanBytes() == int64_t(buffer.getBytes());
          if (list.empty() || list.back().body != body.getSymNameAttr())
            list.push_back({body.getSymNameAttr(), whole});
        }
      };
      body.walk([&](CommandOpInterface command) {
        note(command.getReads(), /*writes=*/false);
        note(command.getWrites(), /*writes=*/true);
      });
    }
    std::map<std::vector<BodyUse>, int64_t> known;
    for (auto &[buffer, list] : users) {
      // Who runs once and reads what is made for each micro-batch (of weights,
      // or it would be summed) finds the same in each copy: it reads the first.
      bool isOfOne = false;
      llvm::erase_if(list, [&, buffer = buffer](const BodyUse &use) {
        bool isOnce = !inFlight.repeats(use.body);
        isOfOne |= isOnce && writers.contains({buffer, use.body});
        return isOnce;
      });
      if (list.size() <= 1 || isOfOne || !isOfMicroBatch(buffer))
        continue;
      auto [copies, isNew] =
          known.try_emplace(std::vector<BodyUse>(list.begin(), list.end()), 1);
      if (isNew)
        copies->second = inFlight.countCopies(list);
      if (copies->second == 1)
        continue;
      buffer.setSlots(copies->second);
    }
    if (cost::isAskedForDecisions(getOperation()))
      tell(program, entry);
  }

  /// Buffers with as many copies are one decision; the others would have one
  /// for each micro-batch.
  void tell(ProgramOp program, EntryOp entry) {
    int64_t microBatches = 1;
    for (const RunTurn &run : listRuns(entry))
      microBatches = std::max(microBatches, run.getMicroBatch() + 1);
    std::map<int64_t, std::pair<int64_t, int64_t>> kinds; ///< count, bytes
    for (auto buffer : program.getOps<BufferOp>())
      if (int64_t(buffer.getSlots()) > 1) {
        auto &[count, bytes] = kinds[buffer.getSlots()];
        ++count;
        bytes += buffer.getBytes();
      }
    for (auto &[copies, kind] : kinds) {
      auto &[count, bytes] = kind;
      cost::Decision decision{
          "copies in flight",
          (Twine(count) + (count == 1 ? " buffer" : " buffers") + " of @" +
           program.getSymName() + " in '" + entry.getKind() + "'")
              .str(),
          {std::to_string(copies), std::nullopt, copies * bytes, ""},
          {},
          "no more micro-batches are alive at once, by the run list"};
      if (copies < microBatches)
        decision.others.push_back({std::to_string(microBatches), std::nullopt,
                                   microBatches * bytes,
                                   "one for each micro-batch"});
      cost::tell(getOperation(), decision);
    }
  }

  static bool isOfMicroBatch(BufferOp buffer) {
    return llvm::is_contained(
        {Role::activation, Role::input, Role::output, Role::communication},
        buffer.getRole());
  }
};
} // namespace
} // namespace accel::plan
