// Joins the reductions of gradients into buckets, and lets them go on while the
// next gradients are computed. Li et al., PyTorch Distributed, VLDB 2020, §3.2.

#include "accel/Plan/Passes.h"
#include "dialects/Plan/Plan.h"

using namespace mlir;

namespace accel::plan {
#define GEN_PASS_DEF_BUCKETCOLLECTIVESPASS
#include "accel/Plan/Passes.h.inc"

static constexpr StringLiteral kCommStream = "comm";

namespace {
/// Reductions that wait.
struct Bucket {
  SmallVector<CollectiveOp> members;
  llvm::SmallDenseSet<StringAttr> buffers; ///< of terms and sums
  int64_t bytes = 0;

  bool takes(CollectiveOp op) {
    if (members.empty())
      return true;
    CollectiveOp first = members.front();
    return op.getAxes() == first.getAxes() &&
           op.getCombineAttr() == first.getCombineAttr();
  }
  void add(CollectiveOp op) {
    members.push_back(op);
    CommandOpInterface command = op;
    for (ViewAttr view : command.getReads())
      bytes += view.getSpanBytes();
    for (auto views : {command.getReads(), command.getWrites()})
      for (ViewAttr view : views)
        buffers.insert(view.getBuffer().getAttr());
  }
  bool touches(CommandOpInterface command) {
    for (auto views : {command.getReads(), command.getWrites()})
      for (ViewAttr view : views)
        if (buffers.contains(view.getBuffer().getAttr()))
          return true;
    return false;
  }
};

/// One body.
class Buckets {
public:
  Buckets(BodyOp body, int64_t bytes) : body(body), bytes(bytes) {}

  void run() {
    SmallVector<CommandOpInterface> commands;
    body.walk([&](CommandOpInterface command) { commands.push_back(command); });
    for (CommandOpInterface command : commands) {
      auto collective = dyn_cast<CollectiveOp>(command.getOperation());
      bool reduces = collective &&
                     collective.getKind() == Collective::all_reduce &&
                     !collective.getWire();
      if (bucket.touches(command) || (collective && !reduces) ||
          (reduces && !bucket.takes(collective)))
        flush(command);
      if (!reduces)
        continue;
      bucket.add(collective);
      if (bucket.bytes >= bytes)
        flush(command->getNextNode());
    }
    flush(nullptr);
    moveToStream();
  }

private:
  /// Reduces what waits, in front of `before`, or at the end.
  void flush(Operation *before) {
    if (bucket.members.empty())
      return;
    CollectiveOp first = bucket.members.front();
    OpBuilder builder(body.getContext());
    if (before)
      builder.setInsertionPoint(before);
    else
      builder.setInsertionPointToEnd(&body.getBody().front());
    SmallVector<Attribute> inputs, outputs;
    SmallVector<Location> locations;
    for (CollectiveOp member : bucket.members) {
      llvm::append_range(inputs, member.getInputs());
      llvm::append_range(outputs, member.getOutputs());
      locations.push_back(member.getLoc());
    }
    auto joined = CollectiveOp::create(
        builder, builder.getFusedLoc(locations), first.getKind(),
        first.getAxes(), builder.getArrayAttr(inputs),
        builder.getArrayAttr(outputs), first.getCombineAttr(),
        /*dim=*/0, /*split_dim=*/0, nullptr, nullptr, first.getStream());
    joined->setDiscardableAttrs(first->getDiscardableAttrDictionary());
    for (CollectiveOp member : bucket.members)
      member.erase();
    made.push_back(joined);
    bucket = Bucket();
  }

  /// Buckets whose sums nothing in the body reads need not hold it up. All
  /// collectives of a body stay on one stream: ranks meet in one order.
  void moveToStream() {
    if (made.empty())
      return;
    bool others = false;
    body.walk([&](CommandOpInterface command) {
      auto collective = dyn_cast<CollectiveOp>(command.getOperation());
      if (collective && !llvm::is_contained(made, collective))
        others = true;
      if (collective)
        return;
      for (CollectiveOp bucketOp : made) {
        Bucket sums;
        sums.add(bucketOp);
        others |= bucketOp->isBeforeInBlock(command) && sums.touches(command);
      }
    });
    if (others)
      return;
    OpBuilder builder(body.getContext());
    for (auto [number, op] : llvm::enumerate(made)) {
      std::string event = "bucket_" + std::to_string(number);
      builder.setInsertionPoint(op);
      RecordOp::create(builder, op.getLoc(), event, "compute");
      WaitOp::create(builder, op.getLoc(), event, kCommStream);
      op.setStream(kCommStream);
    }
    builder.setInsertionPointAfter(made.back());
    RecordOp::create(builder, made.back().getLoc(), "buckets", kCommStream);
    builder.setInsertionPointToEnd(&body.getBody().front());
    WaitOp::create(builder, made.back().getLoc(), "buckets", "compute");
  }

  BodyOp body;
  int64_t bytes;
  Bucket bucket;
  SmallVector<CollectiveOp> made;
};

struct BucketCollectivesPass
    : impl::BucketCollectivesPassBase<BucketCollectivesPass> {
  using Base::Base;

  void runOnOperation() override {
    for (auto program : getOperation().getOps<ProgramOp>())
      for (auto body : program.getOps<BodyOp>())
        Buckets(body, bytes).run();
  }
};
} // namespace
} // namespace accel::plan
