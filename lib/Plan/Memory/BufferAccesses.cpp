// Looks at each copy of a buffer by itself, micro-batch after micro-batch.

#include "BufferAccesses.h"

#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace accel;
using namespace accel::plan;

static llvm::SmallSetVector<StringAttr, 8> listBuffers(CommandOpInterface op) {
  llvm::SmallSetVector<StringAttr, 8> buffers;
  for (ViewAttr view : getViews(op))
    buffers.insert(view.getBuffer().getAttr());
  return buffers;
}

BufferAccesses::BufferAccesses(ProgramOp program)
    : entries(getEntriesInOrder(program)), turns(program) {
  program.walk([&](CommandOpInterface command) {
    for (StringAttr buffer : listBuffers(command))
      users[buffer].push_back(command);
  });
}

void BufferAccesses::follow(const CommandOrder &order) {
  for (const Execution &execution : order.getExecutions())
    for (StringAttr buffer : listBuffers(execution.command))
      accesses[buffer].push_back(&execution);
}

/// Whether all micro-batches of an entry go through the same of these bodies in
/// the same order.
bool BufferAccesses::goAlike(unsigned entry, ArrayRef<StringAttr> bodies) {
  std::vector<const void *> key;
  for (StringAttr body : bodies)
    key.push_back(body.getAsOpaquePointer());
  auto [known, isNew] = alike.try_emplace({entry, key}, true);
  if (!isNew)
    return known->second;
  std::map<int64_t, SmallVector<StringAttr>> ways;
  for (const RunTurn &run : listRuns(entries[entry]))
    if (StringAttr body = run.run.getTaskAttr().getAttr();
        llvm::is_contained(bodies, body))
      ways[run.getMicroBatch()].push_back(body);
  for (auto &[microBatch, way] : ways)
    known->second &= way == ways.begin()->second;
  return known->second;
}

/// Whether a micro-batch accesses a buffer in turns for which others stand, and
/// goes the way of those that are followed from end to end.
bool BufferAccesses::goesUnseen(unsigned entry, int64_t microBatch,
                                StringAttr buffer) {
  llvm::SmallSetVector<StringAttr, 4> bodies;
  for (CommandOpInterface user : users[buffer])
    bodies.insert(user->getParentOfType<BodyOp>().getSymNameAttr());
  WalkResult found = entries[entry].walk([&](RunOp run) {
    int64_t turn = microBatch - int64_t(run.getOffset());
    bool isLeftOut = turn >= 0 && turn < run.getTrips() &&
                     !turns.isWhole(turn, run.getTrips()) &&
                     bodies.contains(run.getTaskAttr().getAttr());
    return isLeftOut ? WalkResult::interrupt() : WalkResult::advance();
  });
  return found.wasInterrupted() && goAlike(entry, bodies.getArrayRef());
}

bool BufferAccesses::isLastUse(CommandOpInterface command, BufferOp buffer) {
  StringAttr name = buffer.getSymNameAttr();
  ArrayRef<const Execution *> list = accesses[name];
  int64_t slots = buffer.getSlots();
  std::map<std::pair<unsigned, int64_t>, int64_t> current; // of each copy
  std::map<std::pair<unsigned, int64_t>, SmallVector<const Execution *, 1>> own;
  for (const Execution *access : list) {
    int64_t microBatch = access->run.getMicroBatch();
    if (access->command == command)
      own[{access->entry, microBatch}].push_back(access);
    auto [at, isNew] =
        current.try_emplace({access->entry, microBatch % slots}, microBatch);
    if (!isNew && at->second == microBatch)
      continue;
    at->second = microBatch;
    for (ViewAttr view : CommandOpInterface(access->command).getReads())
      if (view.getBuffer().getAttr() == name &&
          !goesUnseen(access->entry, microBatch, name))
        return false; // what an earlier run has left
  }
  for (const Execution *access : list) {
    auto found = own.find({access->entry, access->run.getMicroBatch()});
    if (found == own.end())
      continue;
    for (const Execution *last : found->second)
      if (access != last && !CommandOrder::happensBefore(*access, *last))
        return false;
  }
  return true;
}

bool BufferAccesses::canShareBytes(BufferOp from, BufferOp to) {
  StringAttr names[] = {from.getSymNameAttr(), to.getSymNameAttr()};
  int64_t slots = std::max(from.getSlots(), to.getSlots());
  SmallVector<const Execution *> list(accesses[names[0]]);
  llvm::append_range(list, accesses[names[1]]);
  llvm::sort(list);
  struct User {
    int64_t microBatch;
    SmallVector<const Execution *, 2> last; ///< of each stream
    llvm::DenseSet<int64_t> ended;
  };
  std::map<std::pair<unsigned, int64_t>, User> users; // of a copy, in an entry
  for (const Execution *access : list) {
    int64_t microBatch = access->run.getMicroBatch();
    auto [at, isNew] = users.try_emplace({access->entry, microBatch % slots});
    User &user = at->second;
    if (isNew || user.microBatch != microBatch) {
      for (const Execution *last : user.last)
        if (last && !CommandOrder::happensBefore(*last, *access))
          return false;
      if (!isNew)
        user.ended.insert(user.microBatch);
      // It finds another's bytes, unless it begins anew.
      for (ViewAttr view : CommandOpInterface(access->command).getReads())
        if (user.ended.contains(microBatch) &&
            llvm::is_contained(names, view.getBuffer().getAttr()))
          return false;
      user.microBatch = microBatch;
      user.last.assign(access->clock.size(), nullptr);
    }
    user.last[access->stream] = access;
  }
  return true;
}

void BufferAccesses::merge(StringAttr gone, StringAttr kept) {
  SmallVector<CommandOpInterface> moved = std::move(users[gone]);
  users.erase(gone);
  SmallVector<CommandOpInterface> &list = users[kept];
  for (CommandOpInterface command : moved)
    if (!llvm::is_contained(list, command))
      list.push_back(command);
  SmallVector<const Execution *> executions = std::move(accesses[gone]);
  accesses.erase(gone);
  SmallVector<const Execution *> &all = accesses[kept];
  llvm::append_range(all, executions);
  llvm::sort(all);
  all.erase(llvm::unique(all), all.end());
}
