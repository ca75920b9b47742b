// Lets collectives go on beside the computation, and begins gathers of weights
// one unit ahead.

#include "accel/Plan/Passes.h"
#include "dialects/Plan/Plan.h"

using namespace mlir;

namespace accel::plan {
#define GEN_PASS_DEF_OVERLAPCOLLECTIVESPASS
#include "accel/Plan/Passes.h.inc"

static constexpr StringLiteral kCommStream = "comm";
static constexpr StringLiteral kComputeStream = "compute";

/// Whether one of two commands writes bytes of a buffer that the other touches.
static bool conflict(CommandOpInterface lhs, CommandOpInterface rhs) {
  auto writes = [](CommandOpInterface writer, CommandOpInterface other) {
    for (ViewAttr written : writer.getWrites())
      for (auto views : {other.getReads(), other.getWrites()})
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
  explicit Overlap(BodyOp body) : body(body) {
    for (Operation &op : body.getBody().front())
      if (auto command = dyn_cast<CommandOpInterface>(op))
        commands.push_back(command);
    for (CommandOpInterface command : commands)
      if (auto collective = dyn_cast<CollectiveOp>(command.getOperation()))
        collectives.push_back(collective);
  }

  void run() {
    // Within groups and of their own streams: somebody else's order.
    bool nested = false;
    body.walk([&](CollectiveOp op) { nested |= op->getParentOp() != body; });
    if (nested || collectives.empty() || !prefetch())
      return;
    for (auto [number, collective] : llvm::enumerate(collectives))
      moveToStream(collective, number);
    // Those that nothing here waits for.
    OpBuilder builder = OpBuilder::atBlockEnd(&body.getBody().front());
    if (!findReader(collectives.back()))
      WaitOp::create(builder, collectives.back().getLoc(),
                     nameOf(collectives.size() - 1) + "_done", kComputeStream);
  }

private:
  /// The first command after a collective that needs it done.
  CommandOpInterface findReader(CollectiveOp collective) {
    CommandOpInterface command = collective;
    for (Operation *op = collective->getNextNode(); op; op = op->getNextNode())
      if (auto other = dyn_cast<CommandOpInterface>(op))
        if (!isa<CollectiveOp>(op) && conflict(command, other))
          return other;
    return nullptr;
  }

  /// Whether nothing stands between a collective and what needs it, or the end.
  bool isNeededAtOnce(CollectiveOp collective) {
    Operation *op = collective->getNextNode();
    while (op && isa<CollectiveOp>(op))
      op = op->getNextNode();
    CommandOpInterface reader = findReader(collective);
    return op == (reader ? reader.getOperation() : nullptr);
  }

  /// The last command of the body that touches what a collective brings; null
  /// if none does.
  Operation *findLastReader(CollectiveOp collective) {
    CommandOpInterface command = collective;
    Operation *last = nullptr;
    for (Operation *op = collective->getNextNode(); op; op = op->getNextNode())
      if (auto other = dyn_cast<CommandOpInterface>(op))
        if (!isa<CollectiveOp>(op) && conflict(command, other))
          last = op;
    return last;
  }

  /// Moves each gather in front of the first reader of the one before it, or,
  /// if that is later, after the last reader of the one before that: two units
  /// are alive. Says whether any collective has something to go on beside.
  bool prefetch() {
    bool overlaps = false;
    CollectiveOp previous, former;
    for (CollectiveOp collective : collectives) {
      if (collective->hasAttr(kUnitAttr)) {
        Operation *limit = previous ? findReader(previous) : nullptr;
        Operation *last = former ? findLastReader(former) : nullptr;
        if (limit && last && !last->isBeforeInBlock(limit))
          limit = last->getNextNode();
        moveUp(collective, limit);
        // Gathers of one unit stay together.
        if (previous &&
            previous->getAttr(kUnitAttr) != collective->getAttr(kUnitAttr))
          former = previous;
        previous = collective;
      }
      overlaps |= !isNeededAtOnce(collective);
    }
    collectives.clear();
    for (auto collective : body.getOps<CollectiveOp>())
      collectives.push_back(collective);
    return overlaps;
  }

  /// Moves a gather up in front of `limit`, as far as what lies between lets
  /// it.
  void moveUp(CollectiveOp gather, Operation *limit) {
    if (!limit || limit == gather || gather->isBeforeInBlock(limit))
      return;
    Operation *target = gather;
    for (Operation *op = gather->getPrevNode(); op; op = op->getPrevNode()) {
      auto command = dyn_cast<CommandOpInterface>(op);
      if (command && conflict(command, gather))
        break;
      target = op;
      if (op == limit)
        break;
    }
    if (target != gather)
      gather->moveBefore(target);
  }

  static std::string nameOf(size_t number) {
    return "collective_" + std::to_string(number);
  }

  void moveToStream(CollectiveOp collective, size_t number) {
    std::string name = nameOf(number);
    Location loc = collective.getLoc();
    OpBuilder builder(collective);
    RecordOp::create(builder, loc, name, kComputeStream);
    WaitOp::create(builder, loc, name, kCommStream);
    collective.setStream(kCommStream);
    builder.setInsertionPointAfter(collective);
    CommandOpInterface reader = findReader(collective);
    // Events of a stream come in order: a later one stands for this one where
    // nothing here reads it.
    if (!reader && number + 1 < collectives.size())
      return;
    RecordOp::create(builder, loc, name + "_done", kCommStream);
    if (!reader)
      return;
    builder.setInsertionPoint(reader);
    WaitOp::create(builder, loc, name + "_done", kComputeStream);
  }

  BodyOp body;
  SmallVector<CommandOpInterface> commands;
  SmallVector<CollectiveOp> collectives;
};

struct OverlapCollectivesPass
    : impl::OverlapCollectivesPassBase<OverlapCollectivesPass> {
  using Base::Base;

  void runOnOperation() override {
    for (auto program : getOperation().getOps<ProgramOp>())
      for (auto body : program.getOps<BodyOp>())
        Overlap(body).run();
  }
};
} // namespace
} // namespace accel::plan
