// Joins collectives that can wait for each other: the reductions of gradients
// into buckets, the gathers of a unit's weights into one. Li et al., PyTorch
// Distributed, VLDB 2020, section 3.2.

#include "AwaitedRecords.h"
#include "lib/Cost/Decision.h"
#include "lib/Cost/Machine.h"
#include "lib/Plan/BufferTable.h"
#include "lib/Plan/Passes.h"

using namespace mlir;

namespace accel::plan {
#define GEN_PASS_DEF_BUCKETCOLLECTIVESPASS
#include "lib/Plan/Passes.h.inc"

namespace {
/// Collectives that wait.
struct Bucket {
  SmallVector<CollectiveOp> members;
  llvm::SmallDenseSet<StringAttr> buffers; ///< of what goes in and comes out
  int64_t bytes = 0;
  /// Commands that add one member's result to an accumulator, right after it.
  SmallVector<CommandOpInterface> followers;

  bool takes(CollectiveOp op) {
    CollectiveOp first = members.front();
    return op.getCollective() == first.getCollective() &&
           op.getAxes() == first.getAxes() &&
           op.getCombineAttr() == first.getCombineAttr() &&
           op.getDim() == first.getDim() &&
           op->getAttr(kUnitAttr) == first->getAttr(kUnitAttr) &&
           op->getAttr(kInstanceAttr) == first->getAttr(kInstanceAttr);
  }
  void join(CollectiveOp op) {
    members.push_back(op);
    for (auto view : op.getInputs().getAsRange<ViewAttr>())
      bytes += view.getSpanBytes();
    hold(op);
  }
  void follow(CommandOpInterface op) {
    followers.push_back(op);
    hold(op);
  }
  void hold(CommandOpInterface op) {
    for (const auto &views : {op.getReads(), op.getWrites()})
      for (ViewAttr view : views)
        buffers.insert(view.getBuffer().getAttr());
  }
};

/// One body.
class Buckets {
public:
  Buckets(BodyOp body, const BufferTable &buffers,
          const AwaitedRecords &awaited, int64_t bytes)
      : body(body), buffers(buffers), awaited(awaited), bytes(bytes) {}

  void run() {
    SmallVector<CommandOpInterface> commands;
    body.walk([&](CommandOpInterface command) { commands.push_back(command); });
    for (CommandOpInterface command : commands)
      if (auto collective = dyn_cast<CollectiveOp>(command.getOperation());
          collective && collective.getCollective() != Collective::all_gather &&
          collective->hasAttr(kUnitAttr))
        lastOfUnit[collective->getAttr(kUnitAttr)] = collective;
    for (CommandOpInterface command : commands) {
      auto collective = dyn_cast<CollectiveOp>(command.getOperation());
      bool joins = collective && isJoined(collective);
      if (touches(command, lateBuffers))
        place(late, command);
      if (!joins && defers(command))
        continue;
      for (size_t at = 0; at < open.size();) {
        bool waits = !isFull(open[at]) && !touches(command, open[at].buffers) &&
                     (joins || !collective);
        if (waits)
          ++at;
        else
          flush(at, command);
      }
      if (!joins)
        continue;
      auto *bucket = llvm::find_if(
          open, [&](Bucket &each) { return each.takes(collective); });
      if (bucket == open.end()) {
        open.emplace_back();
        bucket = &open.back();
      }
      bucket->join(collective);
      if (lastOfUnit.lookup(collective->getAttr(kUnitAttr)) == collective)
        lastOfUnit.erase(collective->getAttr(kUnitAttr));
    }
    while (!open.empty())
      flush(0, nullptr);
    place(late, nullptr);
  }

private:
  using Names = llvm::SmallDenseSet<StringAttr>;

  /// Whether a command reads or writes one of the buffers, or says that others
  /// may.
  bool touches(CommandOpInterface command, const Names &names) {
    for (const auto &views : {command.getReads(), command.getWrites()})
      for (ViewAttr view : views)
        if (names.contains(view.getBuffer().getAttr()))
          return true;
    auto record = dyn_cast<RecordOp>(command.getOperation());
    return record && awaited.isReadBehind(record, [&](StringAttr buffer) {
      return names.contains(buffer);
    });
  }

  bool isFull(const Bucket &bucket) {
    CollectiveOp first = bucket.members.front();
    if (first.getCollective() == Collective::all_gather &&
        first->hasAttr(kUnitAttr))
      return false;
    // Behind a unit's last gradient there is nothing to wait for.
    return bucket.bytes >= bytes ||
           (first->hasAttr(kUnitAttr) &&
            !lastOfUnit.contains(first->getAttr(kUnitAttr)));
  }

  static bool isJoined(CollectiveOp op) {
    return !op.getWire() && (op.getCollective() == Collective::all_reduce ||
                             op.getCollective() == Collective::reduce_scatter ||
                             op.getCollective() == Collective::all_gather);
  }

  bool isState(ViewAttr view) {
    BufferOp buffer = buffers.lookup(view);
    return buffer && buffer.getRole() == Role::state;
  }

  /// Takes a command that does nothing but add a scattered sum that waits to a
  /// state: it can wait as well.
  bool defers(CommandOpInterface command) {
    for (Bucket &bucket : open) {
      bool adds = false, others = false;
      for (ViewAttr view : command.getReads()) {
        bool isResult = llvm::any_of(bucket.members, [&](CollectiveOp member) {
          return member.getCollective() == Collective::reduce_scatter &&
                 llvm::is_contained(member.getOutputs(), view);
        });
        adds |= isResult;
        others |= !isResult && !isState(view);
      }
      if (!adds || others)
        continue;
      bucket.follow(command);
      return true;
    }
    return false;
  }

  void place(SmallVectorImpl<CommandOpInterface> &commands, Operation *before) {
    for (CommandOpInterface command : commands)
      if (before)
        command->moveBefore(before);
      else
        command->moveBefore(&body.getBody().front(),
                            body.getBody().front().end());
    commands.clear();
    lateBuffers.clear();
  }

  /// Does what waits, in front of `before`, or at the end. What follows the
  /// bucket before comes first: by now it has arrived.
  void flush(size_t at, Operation *before) {
    Bucket bucket = std::move(open[at]);
    open.erase(open.begin() + at);
    place(late, before);
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
        builder, builder.getFusedLoc(locations), first.getCollective(),
        first.getAxes(), builder.getArrayAttr(inputs),
        builder.getArrayAttr(outputs), /*index=*/nullptr,
        first.getCombineAttr(), first.getDim(), first.getSplitDim(), nullptr,
        nullptr, first.getStream());
    joined->setDiscardableAttrs(first->getDiscardableAttrDictionary());
    for (CollectiveOp member : bucket.members)
      member.erase();
    bool touched = isa_and_present<CommandOpInterface>(before) &&
                   touches(cast<CommandOpInterface>(before), bucket.buffers);
    late = std::move(bucket.followers);
    if (touched)
      place(late, before);
    else if (!late.empty())
      lateBuffers = std::move(bucket.buffers);
  }

  BodyOp body;
  const BufferTable &buffers;
  const AwaitedRecords &awaited;
  int64_t bytes;
  SmallVector<Bucket> open;
  /// The collective that scatters a unit's last gradient, until it waits.
  llvm::DenseMap<Attribute, CollectiveOp> lastOfUnit;
  /// What follows the last bucket, and the buffers of both.
  SmallVector<CommandOpInterface> late;
  llvm::SmallDenseSet<StringAttr> lateBuffers;
};

struct BucketCollectivesPass
    : impl::BucketCollectivesPassBase<BucketCollectivesPass> {
  using Base::Base;

  /// What the collectives of a body take, one after another.
  static cost::Alternative weigh(BodyOp body) {
    double seconds = 0;
    int64_t count = 0, largest = 0;
    body.walk([&](CollectiveOp op) {
      // Of what is scattered or gathered the whole.
      int64_t in = 0, out = 0;
      for (auto view : op.getInputs().getAsRange<ViewAttr>())
        in += view.getSpanBytes();
      for (auto view : op.getOutputs().getAsRange<ViewAttr>())
        out += view.getSpanBytes();
      int64_t bytes = std::max(in, out);
      seconds += cost::kMachine.collective.getSeconds(double(bytes));
      largest = std::max(largest, bytes);
      ++count;
    });
    return {std::to_string(count) +
                (count == 1 ? " collective" : " collectives"),
            seconds, largest, ""};
  }

  void tell(BodyOp body, cost::Alternative apart) {
    cost::Alternative joined = weigh(body);
    if (joined.value == apart.value)
      return;
    apart.detail = "one for each";
    cost::tell(getOperation(),
               {"buckets",
                ("@" + body->getParentOfType<ProgramOp>().getSymName() + " @" +
                 body.getSymName())
                    .str(),
                std::move(joined),
                {std::move(apart)},
                "joined until a bucket has " + std::to_string(bytes) +
                    " bytes, or a unit ends"});
  }

  void runOnOperation() override {
    bool isAsked = cost::isAskedForDecisions(getOperation());
    for (auto program : getOperation().getOps<ProgramOp>()) {
      BufferTable buffers(program);
      AwaitedRecords awaited(program);
      for (auto body : program.getOps<BodyOp>()) {
        cost::Alternative apart = isAsked ? weigh(body) : cost::Alternative();
        Buckets(body, buffers, awaited, bytes).run();
        if (isAsked)
          tell(body, std::move(apart));
      }
    }
  }
};
} // namespace
} // namespace accel::plan
