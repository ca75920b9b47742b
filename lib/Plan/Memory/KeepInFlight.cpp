// Finds how many micro-batches a buffer must keep apart, from the run list
// alone: whatever schedule wrote it.

#include "dialects/Plan/RunList.h"
#include "lib/Cost/Decision.h"
#include "lib/Plan/BufferTable.h"
#include "lib/Plan/Passes.h"
#include "llvm/ADT/MapVector.h"
#include <map>
#include <set>

using namespace mlir;

namespace accel::plan {
#define GEN_PASS_DEF_KEEPINFLIGHTPASS
#include "lib/Plan/Passes.h.inc"

namespace {
/// A body that uses a buffer, and whether it begins by writing it: then it
/// finds nothing of what was there.
struct User {
  StringAttr body;
  bool begins;

  bool operator<(const User &other) const {
    return std::pair(body.getAsOpaquePointer(), begins) <
           std::pair(other.body.getAsOpaquePointer(), other.begins);
  }
};

/// The first and the last run, by their places in the list, in which a micro-
/// batch needs what one has written.
struct Span {
  int64_t microBatch;
  size_t first, last;
};

class InFlight {
public:
  explicit InFlight(EntryOp entry) : runs(listRuns(entry)) {
    for (const RunTurn &run : runs)
      ++count[run.run.getTaskAttr().getAttr()];
  }

  /// Whether each of the bodies runs on several micro-batches.
  bool repeat(ArrayRef<User> users) const {
    return llvm::all_of(
        users, [&](const User &user) { return count.lookup(user.body) > 1; });
  }

  /// Copies that these need: two micro-batches may share one if they are that
  /// many apart.
  int64_t countCopies(ArrayRef<User> users) const {
    llvm::DenseMap<StringAttr, bool> begins;
    for (const User &user : users)
      begins[user.body] = user.begins;
    std::vector<Span> spans;
    llvm::DenseMap<int64_t, size_t> latest; // by micro-batch
    for (auto [place, run] : llvm::enumerate(runs)) {
      auto user = begins.find(run.run.getTaskAttr().getAttr());
      if (user == begins.end())
        continue;
      int64_t batch = run.getMicroBatch();
      auto [span, isNew] = latest.try_emplace(batch, spans.size());
      if (isNew || user->second) {
        span->second = spans.size();
        spans.push_back({batch, place, place});
      }
      spans[span->second].last = place;
    }
    // A run is of one micro-batch: no two begin, and no two end, in one.
    std::map<size_t, std::pair<int64_t, bool>> events;
    for (const Span &span : spans) {
      events[2 * span.first] = {span.microBatch, true};
      events[2 * span.last + 1] = {span.microBatch, false};
    }
    // Of those that have begun and not ended, the oldest and the newest.
    std::set<int64_t> alive;
    int64_t copies = 1;
    for (auto &[place, event] : events) {
      auto [batch, begin] = event;
      if (!begin) {
        alive.erase(batch);
        continue;
      }
      alive.insert(batch);
      copies = std::max(copies, *alive.rbegin() - *alive.begin() + 1);
    }
    return copies;
  }

private:
  SmallVector<RunTurn> runs;
  llvm::DenseMap<StringAttr, unsigned> count; ///< of runs, by body
};

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
    llvm::MapVector<BufferOp, SmallVector<User, 4>> users;
    for (auto body : program.getOps<BodyOp>()) {
      auto note = [&](ArrayRef<ViewAttr> views, bool writes) {
        for (ViewAttr view : views) {
          BufferOp buffer = buffers.lookup(view);
          SmallVector<User, 4> &list = users[buffer];
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
    std::map<std::vector<User>, int64_t> known;
    for (auto &[buffer, list] : users) {
      if (list.size() == 1 || !isOfMicroBatch(buffer) || !inFlight.repeat(list))
        continue;
      auto [copies, isNew] =
          known.try_emplace(std::vector<User>(list.begin(), list.end()), 1);
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
