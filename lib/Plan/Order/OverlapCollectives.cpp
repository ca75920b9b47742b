// Lets collectives go on beside the computation, and begins gathers of weights
// one unit ahead.

#include "AwaitedRecords.h"
#include "lib/Plan/BufferTable.h"
#include "lib/Plan/Passes.h"

using namespace mlir;

namespace accel::plan {
#define GEN_PASS_DEF_OVERLAPCOLLECTIVESPASS
#include "lib/Plan/Passes.h.inc"

static constexpr StringLiteral kCommStream = "comm";
static constexpr StringLiteral kComputeStream = "compute";

/// Whether one of two commands writes bytes of a buffer that the other touches.
static bool conflict(CommandOpInterface lhs, CommandOpInterface rhs) {
  auto writes = [](CommandOpInterface writer, CommandOpInterface other) {
    for (ViewAttr written : writer.getWrites())
      for (const auto &views : {other.getReads(), other.getWrites()})
        for (ViewAttr view : views)
          if (view.getBuffer() == written.getBuffer())
            return true;
    return false;
  };
  return writes(lhs, rhs) || writes(rhs, lhs);
}

namespace {
/// One body.
class Overlap {
public:
  Overlap(BodyOp body, const BufferTable &buffers,
          const AwaitedRecords &awaited)
      : body(body), buffers(buffers), awaited(awaited) {
    for (Operation &op : body.getBody().front())
      if (auto command = dyn_cast<CommandOpInterface>(op))
        commands.push_back(command);
    for (CommandOpInterface command : commands) {
      if (auto collective = dyn_cast<CollectiveOp>(command.getOperation())) {
        collectives.push_back(collective);
        if (isGather(collective))
          for (auto view : collective.getInputs().getAsRange<ViewAttr>())
            gathering[view.getBuffer()].push_back(collective);
      } else
        for (const auto &views : {command.getReads(), command.getWrites()})
          for (ViewAttr view : views)
            touching[view.getBuffer()].push_back(command);
    }
    llvm::append_range(records, body.getOps<RecordOp>());
  }

  void run() {
    // Within groups and of their own streams: somebody else's order.
    bool nested = false;
    body.walk([&](CollectiveOp op) { nested |= op->getParentOp() != body; });
    if (nested || collectives.empty() || !prefetch())
      return;
    findGradients();
    for (auto [number, collective] : llvm::enumerate(collectives))
      moveToStream(collective, number);
    // Those that nothing here waits for.
    OpBuilder builder = OpBuilder::atBlockEnd(&body.getBody().front());
    if (!findReader(collectives.back()))
      WaitOp::create(builder, collectives.back().getLoc(),
                     nameOf(collectives.size() - 1) + "_done",
                     FlatSymbolRefAttr(), kComputeStream);
  }

private:
  /// The commands after a collective that need it done, in any order: what
  /// tells others that it is, too.
  SmallVector<CommandOpInterface> findReaders(CollectiveOp collective) {
    CommandOpInterface command = collective;
    SmallVector<CommandOpInterface> readers;
    for (const auto &views : {command.getReads(), command.getWrites()})
      for (ViewAttr view : views)
        for (CommandOpInterface other : touching[view.getBuffer()])
          if (command->isBeforeInBlock(other) && conflict(command, other))
            readers.push_back(other);
    for (RecordOp record : records)
      if (command->isBeforeInBlock(record) &&
          awaited.isReadBehind(record, [&](StringAttr buffer) {
            return llvm::any_of(command.getWrites(), [&](ViewAttr view) {
              return view.getBuffer().getAttr() == buffer;
            });
          }))
        readers.push_back(record);
    return readers;
  }

  static bool comesFirst(CommandOpInterface lhs, CommandOpInterface rhs) {
    return lhs->isBeforeInBlock(rhs);
  }

  /// The first command after a collective that needs it done.
  CommandOpInterface findReader(CollectiveOp collective) {
    auto readers = findReaders(collective);
    return readers.empty() ? CommandOpInterface()
                           : *llvm::min_element(readers, comesFirst);
  }

  /// Whether nothing stands between a collective and what needs it, or the end.
  bool isNeededAtOnce(CollectiveOp collective) {
    Operation *op = collective->getNextNode();
    while (isa_and_present<CollectiveOp>(op))
      op = op->getNextNode();
    CommandOpInterface reader = findReader(collective);
    return op == (reader ? reader.getOperation() : nullptr);
  }

  /// The last command of the body that touches what a collective brings; null
  /// if none does.
  Operation *findLastReader(CollectiveOp collective) {
    auto readers = findReaders(collective);
    return readers.empty()
               ? nullptr
               : llvm::max_element(readers, comesFirst)->getOperation();
  }

  static bool isGather(CollectiveOp op) {
    return op.getCollective() == Collective::all_gather &&
           op->hasAttr(kUnitAttr);
  }

  /// Whether another gather of its unit goes on with what a gather brings.
  bool isStepOfGather(CollectiveOp gather) {
    return llvm::any_of(
        gather.getOutputs().getAsRange<ViewAttr>(), [&](ViewAttr output) {
          auto found = gathering.find(output.getBuffer());
          return found != gathering.end() &&
                 llvm::any_of(found->second, [&](CollectiveOp other) {
                   return other != gather;
                 });
        });
  }

  /// Numbers the units whose gradients are scattered, in their order.
  void findGradients() {
    llvm::SmallDenseMap<Attribute, unsigned> units;
    for (CollectiveOp scatter : collectives) {
      Attribute unit = scatter->getAttr(kUnitAttr);
      if (!unit || isGather(scatter))
        continue;
      unsigned number = units.try_emplace(unit, units.size()).first->second;
      scattered[scatter] = number;
      for (auto view : scatter.getInputs().getAsRange<ViewAttr>())
        unitOf[view.getBuffer().getAttr()] = number;
    }
  }

  /// The first command after a scatter of gradients that makes one of the unit
  /// after the next: two units are whole at most.
  Operation *findThirdUnit(CollectiveOp scatter) {
    auto found = scattered.find(scatter);
    if (found == scattered.end())
      return nullptr;
    for (Operation *op = scatter->getNextNode(); op; op = op->getNextNode())
      if (auto command = dyn_cast<CommandOpInterface>(op))
        for (ViewAttr view : command.getWrites())
          if (auto unit = unitOf.find(view.getBuffer().getAttr());
              unit != unitOf.end() && unit->second > found->second + 1)
            return op;
    return nullptr;
  }

  /// Moves each gather in front of the first reader of the one before it, or,
  /// if that is later, after the last reader of the one before that: two units
  /// are alive. Says whether any collective has something to go on beside.
  bool prefetch() {
    bool overlaps = false;
    CollectiveOp previous, former;
    for (CollectiveOp collective : collectives) {
      if (isGather(collective)) {
        Operation *limit = previous ? findReader(previous) : nullptr;
        Operation *last = former ? findLastReader(former) : nullptr;
        if (limit && last && !last->isBeforeInBlock(limit))
          limit = last->getNextNode();
        moveUp(collective, limit);
        // Gathers of one unit stay together. One that others go on with has no
        // reader of its own.
        if (!isStepOfGather(collective)) {
          if (previous &&
              previous->getAttr(kUnitAttr) != collective->getAttr(kUnitAttr))
            former = previous;
          previous = collective;
        }
      }
      overlaps |= !isNeededAtOnce(collective);
    }
    collectives.clear();
    for (auto collective : body.getOps<CollectiveOp>())
      collectives.push_back(collective);
    return overlaps;
  }

  /// Whether a command makes nothing but what the gather sends, of states
  /// alone: a rounded weight.
  bool feeds(CommandOpInterface command, CollectiveOp gather) {
    auto isSent = [&](ViewAttr view) {
      return llvm::any_of(gather.getInputs().getAsRange<ViewAttr>(),
                          [&](ViewAttr input) {
                            return input.getBuffer() == view.getBuffer();
                          });
    };
    return isa<KernelOp>(command.getOperation()) &&
           llvm::all_of(command.getWrites(), isSent) &&
           llvm::all_of(command.getReads(), [&](ViewAttr view) {
             return buffers.lookup(view).getRole() == Role::state;
           });
  }

  /// Moves a gather up in front of `limit`, as far as what lies between lets
  /// it, and with it what feeds it.
  void moveUp(CollectiveOp gather, Operation *limit) {
    if (!limit || limit == gather || gather->isBeforeInBlock(limit))
      return;
    SmallVector<Operation *> moved{gather};
    Operation *target = nullptr;
    for (Operation *op = gather->getPrevNode(); op; op = op->getPrevNode()) {
      auto command = dyn_cast<CommandOpInterface>(op);
      if (command && feeds(command, gather)) {
        moved.push_back(op);
        continue;
      }
      if (command && llvm::any_of(moved, [&](Operation *each) {
            return conflict(command, cast<CommandOpInterface>(each));
          }))
        break;
      target = op;
      if (op == limit)
        break;
    }
    // What has fed it from above the target stays there.
    for (Operation *op : llvm::reverse(moved))
      if (target && target->isBeforeInBlock(op))
        op->moveBefore(target);
  }

  static std::string nameOf(size_t number) {
    return "collective_" + std::to_string(number);
  }

  void moveToStream(CollectiveOp collective, size_t number) {
    std::string name = nameOf(number);
    Location loc = collective.getLoc();
    OpBuilder builder(collective);
    RecordOp::create(builder, loc, name, kComputeStream);
    WaitOp::create(builder, loc, name, FlatSymbolRefAttr(), kCommStream);
    collective.setStream(kCommStream);
    builder.setInsertionPointAfter(collective);
    Operation *reader = findReader(collective);
    Operation *limit = findThirdUnit(collective);
    if (limit && (!reader || limit->isBeforeInBlock(reader)))
      reader = limit;
    // Events of a stream come in order: a later one stands for this one where
    // nothing here reads it.
    if (!reader && number + 1 < collectives.size())
      return;
    RecordOp::create(builder, loc, name + "_done", kCommStream);
    if (!reader)
      return;
    builder.setInsertionPoint(reader);
    WaitOp::create(builder, loc, name + "_done", FlatSymbolRefAttr(),
                   kComputeStream);
  }

  BodyOp body;
  const BufferTable &buffers;
  const AwaitedRecords &awaited;
  SmallVector<CommandOpInterface> commands;
  SmallVector<CollectiveOp> collectives;
  /// The other commands that touch a buffer.
  llvm::DenseMap<Attribute, SmallVector<CommandOpInterface>> touching;
  /// The gathers that send a buffer.
  llvm::DenseMap<Attribute, SmallVector<CollectiveOp, 1>> gathering;
  /// What tells other bodies something: all but those that this pass makes.
  SmallVector<RecordOp> records;
  /// Of collectives that scatter gradients, and of these, the unit's number.
  llvm::SmallDenseMap<Operation *, unsigned> scattered;
  llvm::DenseMap<StringAttr, unsigned> unitOf;
};

struct OverlapCollectivesPass
    : impl::OverlapCollectivesPassBase<OverlapCollectivesPass> {
  using Base::Base;

  void runOnOperation() override {
    for (auto program : getOperation().getOps<ProgramOp>()) {
      BufferTable buffers(program);
      AwaitedRecords awaited(program);
      for (auto body : program.getOps<BodyOp>())
        Overlap(body, buffers, awaited).run();
    }
  }
};
} // namespace
} // namespace accel::plan
