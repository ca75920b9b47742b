// Takes the rows of a loss in chunks: the head, the loss and its gradient of
// one chunk before those of the next.

#include "LossRows.h"
#include "dialects/Dist/LossChunks.h"
#include "dialects/Interfaces/KernelSource.h"
#include "dialects/Interfaces/ShardingRule.h"
#include "dialects/NN/Casts.h"
#include "dialects/NN/Entry.h"
#include "dialects/NN/TensorTypes.h"
#include "lib/Parallel/Passes.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;

namespace accel::parallel {
#define GEN_PASS_DEF_CHUNKLOSSPASS
#include "lib/Parallel/Passes.h.inc"

namespace {
class Chunker {
public:
  Chunker(LossRows &rows, int64_t chunks)
      : rows(rows), chunks(chunks),
        // All that members read stands before the last of them.
        end(rows.members.back()->getNextNode()), builder(end) {}

  void run() {
    llvm::SetVector<Operation *> behind; // others, of what members make
    for (Operation *op = rows.head->getNextNode(); op != end;
         op = op->getNextNode())
      if (!rows.members.contains(op) &&
          llvm::any_of(op->getOperands(), [&](Value operand) {
            Operation *made = operand.getDefiningOp();
            return rows.members.contains(made) || behind.contains(made);
          }))
        behind.insert(op);
    for (Operation *op : rows.members)
      for (Operation *user : op->getUsers())
        if (!rows.members.contains(user))
          ends.insert(op);
    for (int64_t chunk = 0; chunk < chunks; ++chunk)
      write(chunk);
    for (Operation *op : ends)
      finish(op);
    for (Operation *op : behind)
      op->moveBefore(end);
    for (Operation *op : llvm::reverse(rows.members))
      op->erase();
  }

private:
  RankedTensorType getChunkType(RankedTensorType type, RowPlace place) {
    SmallVector<int64_t> shape(type.getShape());
    shape[place.dim] /= chunks;
    return type.clone(shape);
  }

  /// The last op of a chunk that a member's sum over rows becomes: one that is
  /// rounded for the next op to widen is added up wide.
  Operation *getSummed(Operation *op) {
    if (rows.places.contains(op->getResult(0)) || !op->hasOneUse())
      return op;
    auto cast = dyn_cast<nn::CastOp>(*op->user_begin());
    return cast && isExact(cast) ? cast : op;
  }

  /// An op on a chunk's operands, with a result of `type`.
  Value build(Operation *op, ValueRange operands, RankedTensorType type) {
    SmallVector<Value> results;
    // What is done to a rank's rows is done to a chunk's.
    LogicalResult built = cast<ShardingRuleOpInterface>(op).localize(
        builder, operands, {type}, results);
    assert(succeeded(built) && "ops that work by rows have one");
    (void)built;
    return results.front();
  }

  void write(int64_t chunk) {
    current = chunk;
    made.clear();
    taken.clear();
    Operation *before = builder.getInsertionPoint()->getPrevNode();
    for (Operation *op : rows.members) {
      SmallVector<Value> operands;
      for (unsigned number = 0; number < op->getNumOperands(); ++number)
        operands.push_back(getOperand(op, number));
      Value result = op->getResult(0);
      auto place = rows.places.find(result);
      bool isSum = place == rows.places.end();
      Value value = build(op, operands,
                          isSum ? typeOf(result)
                                : getChunkType(typeOf(result), place->second));
      made[result] = value;
      if (!ends.contains(op))
        continue;
      if (!isSum) {
        parts[op].push_back(value);
        continue;
      }
      if (Operation *last = getSummed(op); last != op)
        value = build(last, value, typeOf(last->getResult(0)));
      Value &sum = sums[op];
      sum =
          sum ? nn::AddOp::create(builder, op->getLoc(), sum, value).getResult()
              : value;
    }
    Operation *first =
        before ? before->getNextNode() : &rows.head->getBlock()->front();
    for (Operation *op = first; op != &*builder.getInsertionPoint();
         op = op->getNextNode())
      op->setAttr(dist::kLossChunkAttr, builder.getI64IntegerAttr(chunk));
  }

  /// What a member reads of this chunk.
  Value getOperand(Operation *op, unsigned number) {
    Value operand = op->getOperand(number);
    if (Value known = made.lookup(operand))
      return known;
    auto place = rows.findOperandRows(op, number);
    assert(succeeded(place) && "LossRows has looked");
    return *place ? take(operand, **place) : operand;
  }

  /// A chunk's part of a value that no member makes. What is as large as
  /// logits, and what costs nothing, is made for the chunk.
  Value take(Value value, RowPlace place) {
    assert(place.outer == 1 && "rows follow each other");
    if (Value known = taken.lookup({value, place.dim}))
      return known;
    Value part = makePart(value, place);
    taken[{value, place.dim}] = part;
    return part;
  }

  Value makePart(Value value, RowPlace place) {
    if (rows.choosePart(value, place) == LossRows::Part::Cut)
      return slice(value, place);
    Operation *op = value.getDefiningOp();
    SmallVector<Value> operands;
    for (auto [number, operand] : llvm::enumerate(op->getOperands())) {
      auto from = findRows(op, number, place);
      operands.push_back(*from ? take(operand, **from) : operand);
    }
    return build(op, operands, getChunkType(typeOf(value), place));
  }

  Value slice(Value value, RowPlace place) {
    RankedTensorType type = getChunkType(typeOf(value), place);
    SmallVector<int64_t> starts(type.getRank(), 0), steps(type.getRank(), 1);
    starts[place.dim] = current * type.getDimSize(place.dim);
    return nn::SliceOp::create(builder, value.getLoc(), type, value, starts,
                               type.getShape(), steps);
  }

  /// The chunks of a result, joined; or what they have added up to.
  void finish(Operation *op) {
    auto replace = [&](Value old, Value by) {
      old.replaceUsesWithIf(by, [&](OpOperand &use) {
        return !rows.members.contains(use.getOwner());
      });
    };
    Value result = op->getResult(0);
    auto at = rows.places.find(result);
    if (at == rows.places.end()) {
      Operation *last = getSummed(op);
      replace(last->getResult(0), sums[op]);
      if (last != op)
        last->setOperand(0, sums[op]); // dead, and perhaps `end`
      return;
    }
    Value joined = nn::ConcatOp::create(builder, op->getLoc(), typeOf(result),
                                        parts[op], at->second.dim);
    replace(result, joined);
  }

  LossRows &rows;
  int64_t chunks, current = 0;
  Operation *end;
  OpBuilder builder;
  llvm::SetVector<Operation *> ends; ///< members that others read
  llvm::DenseMap<Value, Value> made; ///< of the current chunk, by members
  /// Of the current chunk, by values that no member makes.
  llvm::DenseMap<std::pair<Value, unsigned>, Value> taken;
  llvm::DenseMap<Operation *, SmallVector<Value>> parts;
  llvm::DenseMap<Operation *, Value> sums;
};

struct ChunkLossPass : impl::ChunkLossPassBase<ChunkLossPass> {
  using Base::Base;

  void runInOrder() override {
    for (func::FuncOp entry : nn::getEntries(getOperation()))
      if (!entry.isExternal())
        chunk(entry.front());
  }

private:
  static void chunk(Block &block) {
    // What nothing reads would be in the way.
    eraseDead(block);
    for (nn::MatmulOp head : findHeads(block)) {
      auto chunks = cast<IntegerAttr>(head->removeAttr(dist::kLossChunksAttr));
      std::string why;
      std::optional<LossRows> rows = LossRows::find(head, chunks.getInt(), why);
      if (!rows) {
        // The program is right without chunks, and larger.
        head.emitRemark() << "the rows of its loss are not taken in "
                          << chunks.getInt() << " chunks: " << why;
        continue;
      }
      Chunker(*rows, chunks.getInt()).run();
      eraseDead(block);
    }
  }

  /// The marked products; of what is computed again the backward reads the
  /// first one's chunks.
  static SmallVector<nn::MatmulOp> findHeads(Block &block) {
    SmallVector<nn::MatmulOp> heads;
    for (auto head : llvm::make_early_inc_range(block.getOps<nn::MatmulOp>())) {
      if (!head->hasAttr(dist::kLossChunksAttr))
        continue;
      auto same = llvm::find_if(heads, [&](nn::MatmulOp other) {
        return llvm::equal(other->getOperands(), head->getOperands()) &&
               other.getProperties() == head.getProperties();
      });
      if (same == heads.end()) {
        heads.push_back(head);
        continue;
      }
      head.getResult().replaceAllUsesWith(same->getResult());
      head->erase();
    }
    return heads;
  }

  static void eraseDead(Block &block) {
    for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block)))
      if (isOpTriviallyDead(&op))
        op.erase();
  }
};
} // namespace
} // namespace accel::parallel
