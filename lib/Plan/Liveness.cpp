// Walks the run list of a plan once and notes when buffers are used. Of a loop
// three turns: the first, which begins what later ones use, the last, which
// ends it, and one in between, where all of it is alive; every other turn is as
// that one.

#include "Liveness.h"

#include "dialects/Dist/GroupsAxis.h"
#include "dialects/Plan/RunList.h"
#include "lib/Plan/BufferTable.h"

#include "llvm/ADT/SetVector.h"
#include <numeric>

using namespace mlir;
using namespace accel;
using namespace accel::plan;

int64_t Liveness::getBytes(BufferOp buffer) {
  return buffer.getSlots() * buffer.getBytes();
}

namespace accel::plan {
/// One call, command by command.
class Walk {
public:
  Walk(ProgramOp program, Liveness &result) : table(program), result(result) {
    for (auto buffer : program.getOps<BufferOp>())
      if (!buffer.getAliasOf()) {
        always[buffer] = buffer.getRole() == Role::state ||
                         buffer.getRole() == Role::constant ||
                         buffer.getRole() == Role::packed;
        result.buffers[buffer];
      }
  }
  void run(const RunTurn &run);
  void finish();

private:
  using Holding = Liveness::Holding;
  /// By number: more are added while others are pointed at.
  struct Place {
    Operation *buffer;
    size_t number;
  };

  BufferOp ownerOf(ViewAttr view) { return table.getRoot(table.lookup(view)); }
  Holding &at(Place place) {
    return result.buffers[place.buffer].holdings[place.number];
  }
  Place latest(Operation *buffer) {
    return {buffer, result.buffers[buffer].holdings.size() - 1};
  }
  void note(CommandOpInterface command, int64_t batch);
  void use(Operation *buffer, int64_t batch, bool reads, bool writes,
           bool writesAll);
  void noteUnits(CollectiveOp command, ArrayRef<Operation *> read,
                 ArrayRef<Operation *> written);
  void wait(CommandOpInterface command, ArrayRef<Operation *> used);
  void extend(Operation *buffer);
  /// The update's gradients, and what their sums over ranks were made of.
  void finishGradients();

  BufferTable table;
  Liveness &result;
  llvm::DenseMap<Operation *, bool> always;
  llvm::DenseMap<Operation *, int64_t> batchOf;
  std::optional<int64_t> updateStart;
  SmallVector<std::pair<Place, Place>> sums; ///< over ranks: of what, and where
  /// What other streams use: since their last record, and, of each stream in
  /// order, before the events that the first stream has not waited for.
  using Used = llvm::SetVector<Operation *>;
  llvm::StringMap<Used> unrecorded;
  llvm::StringMap<std::vector<std::pair<StringAttr, Used>>> recorded;
};
} // namespace accel::plan

static constexpr StringLiteral kFirstStream = "compute";
static constexpr StringLiteral kUpdate = "update";
/// Of each loop.
static constexpr int64_t kTurns = 3;

void Walk::use(Operation *buffer, int64_t batch, bool reads, bool writes,
               bool writesAll) {
  auto &[lives, holdings] = result.buffers[buffer];
  // Nothing is left in scratch for anybody.
  bool isNew = !reads || cast<BufferOp>(buffer).getRole() == Role::scratch;
  bool isFirst = lives.empty() || (batchOf[buffer] != batch && isNew);
  if (lives.empty() && !isNew)
    always[buffer] = true; // of the call before
  int64_t now = result.moments;
  if (isFirst)
    lives.push_back({now, now});
  lives.back().last = now;
  batchOf[buffer] = batch;
  if (isFirst || (writes && (writesAll || reads)))
    holdings.push_back({{now, now}, Content::Own, {}, !isFirst && reads});
  if (reads && holdings.size() > 1 && holdings.back().inPlace)
    holdings[holdings.size() - 2].last = now;
  holdings.back().last = now;
}

void Walk::extend(Operation *buffer) {
  result.buffers[buffer].lives.back().last = result.moments;
  result.buffers[buffer].holdings.back().last = result.moments;
}

/// Of a collective: whose weights it brings, or gradients it takes.
void Walk::noteUnits(CollectiveOp command, ArrayRef<Operation *> read,
                     ArrayRef<Operation *> written) {
  auto unit = command->getAttrOfType<StringAttr>(kUnitAttr);
  bool gathers = command.getCollective() == Collective::all_gather;
  if (!unit) {
    for (auto [from, to] : llvm::zip(read, written))
      if (!gathers)
        sums.push_back({latest(from), latest(to)});
    return;
  }
  bool overGroups =
      llvm::any_of(command.getAxes().getAsRange<StringAttr>(),
                   [](StringAttr axis) { return axis == dist::kGroupsAxis; });
  for (Operation *buffer : gathers ? written : read) {
    auto &holdings = result.buffers[buffer].holdings;
    size_t number = holdings.size() - 1;
    holdings[number].unit = unit;
    holdings[number].content = !gathers     ? Content::WholeGradient
                               : overGroups ? Content::SecondaryCopy
                                            : Content::GatheredWeight;
    // What it was made of, in the same place, was most of it.
    for (; !gathers && holdings[number].inPlace; --number) {
      holdings[number - 1].unit = unit;
      holdings[number - 1].content = Content::WholeGradient;
    }
  }
}

/// The first stream has what others have used from the moment on when it has
/// waited for them: for that event, or for a later one of the same stream.
void Walk::wait(CommandOpInterface command, ArrayRef<Operation *> used) {
  StringRef stream = command.getStreamName();
  if (auto record = dyn_cast<RecordOp>(command.getOperation())) {
    recorded[stream].emplace_back(record.getEventAttr(),
                                  std::move(unrecorded[stream]));
    unrecorded[stream].clear();
  } else if (auto wait = dyn_cast<WaitOp>(command.getOperation())) {
    if (stream != kFirstStream)
      return;
    for (auto &entry : recorded) {
      auto &events = entry.second;
      auto last = llvm::find_if(llvm::reverse(events), [&](const auto &event) {
        return event.first == wait.getEventAttr();
      });
      for (auto &each : llvm::make_range(events.begin(), last.base()))
        for (Operation *buffer : each.second)
          extend(buffer);
      events.erase(events.begin(), last.base());
    }
  } else if (stream != kFirstStream) {
    unrecorded[stream].insert(used.begin(), used.end());
  }
}

void Walk::note(CommandOpInterface command, int64_t batch) {
  llvm::SmallSetVector<Operation *, 8> read, written, whole;
  for (ViewAttr view : command.getReads())
    read.insert(ownerOf(view));
  for (ViewAttr view : command.getWrites()) {
    BufferOp buffer = ownerOf(view);
    written.insert(buffer);
    if (view.isContiguous() &&
        view.getSpanBytes() == static_cast<int64_t>(buffer.getBytes()))
      whole.insert(buffer);
  }
  for (Operation *buffer : read)
    use(buffer, batch, /*reads=*/true, written.contains(buffer),
        whole.contains(buffer));
  for (Operation *buffer : written)
    if (!read.contains(buffer))
      use(buffer, batch, /*reads=*/false, /*writes=*/true,
          whole.contains(buffer));
  if (updateStart)
    for (Operation *buffer : read)
      if (!always[buffer] && at(latest(buffer)).first < *updateStart)
        at(latest(buffer)).content = Content::Gradient;
  if (auto collective = dyn_cast<CollectiveOp>(command.getOperation()))
    noteUnits(collective, read.getArrayRef(), written.getArrayRef());
  llvm::SetVector<Operation *> used(read.begin(), read.end());
  used.insert(written.begin(), written.end());
  wait(command, used.getArrayRef());
  ++result.moments;
}
void Walk::run(const RunTurn &run) {
  BodyOp body = table.getBody(run.run);
  updateStart.reset();
  if (body.getSymName() == kUpdate)
    updateStart = result.moments;
  body.walk(
      [&](CommandOpInterface command) { note(command, run.getMicroBatch()); });
}

void Walk::finishGradients() {
  auto mark = [&](Place place) {
    for (;; --place.number) {
      Holding &holding = at(place);
      if (holding.content == Content::Own)
        holding.content = Content::Gradient;
      if (!holding.inPlace)
        return;
    }
  };
  for (auto [from, to] : llvm::reverse(sums))
    if (at(to).content == Content::Gradient) {
      mark(from);
      mark(to);
    }
}

void Walk::finish() {
  finishGradients();
  for (auto &[buffer, all] : result.buffers)
    if (always[buffer]) {
      all.lives.assign(1, {0, std::max<int64_t>(result.moments - 1, 0)});
      all.holdings.clear();
    }
}

Liveness Liveness::compute(ProgramOp program) {
  Liveness result;
  Walk walk(program, result);
  for (auto entry : program.getOps<EntryOp>())
    if (entry.getKind() != kLoadEntry)
      for (const RunTurn &run : listRuns(entry, kTurns))
        walk.run(run);
  walk.finish();
  return result;
}

/// The first moment at which the sum of changes is the largest, and that sum.
static std::pair<int64_t, int64_t> findMost(ArrayRef<int64_t> changes) {
  int64_t now = 0, most = -1, when = 0;
  for (auto [moment, change] : llvm::enumerate(changes.drop_back())) {
    now += change;
    if (now > most) {
      most = now;
      when = moment;
    }
  }
  return {when, std::max<int64_t>(most, 0)};
}

SmallVector<Liveness::Held> Liveness::getPeak(Space space) const {
  // Differences of what is alive, moment by moment.
  std::vector<int64_t> changes(moments + 1, 0);
  for (auto &[op, all] : buffers) {
    auto buffer = cast<BufferOp>(op);
    if (buffer.getSpace() != space)
      continue;
    for (const Life &life : all.lives) {
      changes[life.first] += getBytes(buffer);
      changes[life.last + 1] -= getBytes(buffer);
    }
  }
  int64_t when = findMost(changes).first;
  auto isAlive = [&](const Life &life) { return life.holds(when); };
  SmallVector<Held> held;
  for (auto &[op, all] : buffers) {
    if (cast<BufferOp>(op).getSpace() != space ||
        llvm::none_of(all.lives, isAlive))
      continue;
    auto holding = llvm::find_if(all.holdings, isAlive);
    held.push_back({cast<BufferOp>(op), holding == all.holdings.end()
                                            ? Content::Own
                                            : holding->content});
  }
  return held;
}

std::vector<std::vector<int64_t>> Liveness::getProfiles(
    Space space, int64_t alignment, unsigned groups,
    llvm::function_ref<std::optional<unsigned>(BufferOp)> groupOf) const {
  std::vector<std::vector<int64_t>> profiles(
      groups, std::vector<int64_t>(moments + 1, 0));
  for (auto &[op, all] : buffers) {
    auto buffer = cast<BufferOp>(op);
    auto group = buffer.getSpace() == space ? groupOf(buffer) : std::nullopt;
    if (!group)
      continue;
    int64_t bytes = buffer.getSlots() *
                    int64_t(llvm::alignTo(buffer.getBytes(), alignment));
    for (const Life &life : all.lives) {
      profiles[*group][life.first] += bytes;
      profiles[*group][life.last + 1] -= bytes;
    }
  }
  for (std::vector<int64_t> &profile : profiles) {
    std::partial_sum(profile.begin(), profile.end(), profile.begin());
    profile.pop_back();
  }
  return profiles;
}

int64_t Liveness::getUnitsInFlight(Content content) const {
  // A unit counts once however many of its tensors are alive.
  llvm::MapVector<StringAttr, SmallVector<Life>> units;
  for (auto &[op, all] : buffers)
    for (const Holding &holding : all.holdings)
      if (holding.content == content && holding.unit)
        units[holding.unit].push_back(holding);
  std::vector<int64_t> changes(moments + 1, 0);
  for (auto &[unit, lives] : units) {
    llvm::sort(lives, [](const Life &lhs, const Life &rhs) {
      return lhs.first < rhs.first;
    });
    int64_t end = -1; // of what has been counted
    for (const Life &life : lives) {
      if (life.last <= end)
        continue;
      ++changes[std::max(life.first, end + 1)];
      --changes[life.last + 1];
      end = life.last;
    }
  }
  return findMost(changes).second;
}

int64_t Liveness::getMostBytes(Content content) const {
  std::vector<int64_t> changes(moments + 1, 0);
  for (auto &[op, all] : buffers) {
    // A buffer of several copies has as many at most.
    auto buffer = cast<BufferOp>(op);
    for (const Holding &holding : all.holdings)
      if (holding.content == content) {
        changes[holding.first] += buffer.getBytes();
        changes[holding.last + 1] -= buffer.getBytes();
      }
  }
  return findMost(changes).second;
}
