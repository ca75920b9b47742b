// Decides which losses are taken in chunks, and in how many.

#include "LossRows.h"
#include "dialects/Accel/NodeNames.h"
#include "dialects/Dist/LossChunks.h"
#include "dialects/Interfaces/Cost.h"
#include "dialects/Interfaces/KernelSource.h"
#include "dialects/NN/Entry.h"
#include "lib/Cost/Decision.h"
#include "lib/Parallel/Passes.h"
#include "lib/Parallel/States/GradientOps.h"

using namespace mlir;

namespace accel::parallel {
#define GEN_PASS_DEF_MARKLOSSCHUNKSPASS
#include "lib/Parallel/Passes.h.inc"

/// Rows of a chunk at least: the sum that is the weight's gradient is read and
/// written once a chunk, 8 bytes an element, for 2 operations a row.
static constexpr int64_t kLeastRows = 1024;
/// Bytes of logits and their gradient that are worth it, at least, and the part
/// of what is kept beside them that they are.
static constexpr int64_t kLeastBytes = int64_t(32) << 20, kPart = 8;

namespace {
/// A head, on one rank and for one micro-batch.
struct Head {
  mutable nn::MatmulOp product; ///< op handles are pointers
  SmallVector<int64_t> shape;   ///< of its result
  int64_t inner;                ///< columns of what it reads
  int64_t bytes;                ///< of logits
  bool hasGradient;
  int64_t kept = 0; ///< of all that is kept beside them for the backward

  /// Of logits, and of their gradient.
  int64_t countLogitBytes() const { return (hasGradient ? 2 : 1) * bytes; }

  int64_t countRows() const {
    return ShapedType::getNumElements(ArrayRef(shape).drop_back());
  }
};

struct MarkLossChunksPass : impl::MarkLossChunksPassBase<MarkLossChunksPass> {
  using Base::Base;

  void runInOrder() override {
    if (chunks != "auto" && chunks != "none" &&
        (StringRef(chunks).getAsInteger(10, wanted) || wanted < 2)) {
      getOperation().emitError() << "expected 'auto', 'none' or a number of "
                                    "chunks from 2 on, found '"
                                 << chunks << "'";
      return signalPassFailure();
    }
    if (chunks == "none")
      return;
    mesh = dist::MeshOp::of(getOperation());
    for (func::FuncOp entry : nn::getEntries(getOperation())) {
      bool isStep = nn::getEntryKind(entry) == nn::EntryKind::step;
      for (auto loss : entry.front().getOps<nn::CrossEntropyOp>())
        if (failed(mark(entry, isStep, loss)))
          return signalPassFailure();
    }
  }

private:
  /// Whoever asks for a number of chunks asks it of the step: an evaluation may
  /// give its logits away.
  LogicalResult mark(func::FuncOp entry, bool isStep, nn::CrossEntropyOp loss) {
    std::string why;
    std::optional<Head> head = findHead(entry, isStep, loss, why);
    int64_t count = head ? wanted ? wanted : choose(*head, why) : 1;
    if (head && count > 1 && !canChunk(*head, count, why))
      count = 1;
    if (isStep && wanted && count == 1)
      return loss.emitError()
             << "expected a loss whose rows can be taken in " << wanted
             << " chunks (loss_chunks), found one where " << why
             << ": say 'auto', 'none' or another number";
    if (count > 1)
      head->product->setAttr(dist::kLossChunksAttr,
                             Builder(&getContext()).getI64IntegerAttr(count));
    if (isStep && head)
      tell(loss, *head, count, why);
    return success();
  }

  int64_t countRanks(Type type, unsigned dim) {
    auto sharding = dist::ShardingAttr::of(type);
    return sharding ? mesh.getGroupSize(sharding.getDims()[dim]) : 1;
  }

  /// Of one rank and micro-batch.
  int64_t countBytes(Type type) {
    int64_t bytes = getTensorBytes(type);
    for (int64_t dim = 0; dim < cast<RankedTensorType>(type).getRank(); ++dim)
      bytes /= countRanks(type, dim);
    return bytes;
  }

  std::optional<Head> findHead(func::FuncOp entry, bool isStep,
                               nn::CrossEntropyOp loss, std::string &why) {
    nn::MatmulOp product = parallel::findHead(loss, why);
    if (!product)
      return std::nullopt;
    RankedTensorType type = product.getType(),
                     from = product.getLhs().getType();
    int64_t rank = type.getRank();
    if (countRanks(type, rank - 1) > 1) {
      why = "ranks split the classes";
      return std::nullopt;
    }
    Head head{product, {}, from.getShape().back(), countBytes(type), isStep};
    for (int64_t dim = 0; dim < rank; ++dim)
      head.shape.push_back(type.getDimSize(dim) / countRanks(type, dim));
    if (!isStep)
      return head;
    // Of weights, and of what is as large as logits, nothing more is kept.
    GradientOps ops(entry);
    llvm::DenseSet<Value> ofInputs = findVarying(entry), counted;
    for (Operation *op : ops.backward)
      for (Value operand : op->getOperands()) {
        Operation *made = operand.getDefiningOp();
        while (made && isView(made))
          made = (operand = made->getOperand(0)).getDefiningOp();
        int64_t bytes = countBytes(operand.getType());
        if (ops.forward.contains(made) && made != product &&
            !made->hasAttr(dist::kRecomputeAttr) &&
            ofInputs.contains(operand) && 2 * bytes < head.bytes &&
            counted.insert(operand).second)
          head.kept += bytes;
      }
    return head;
  }

  /// What is made of inputs.
  static llvm::DenseSet<Value> findVarying(func::FuncOp step) {
    llvm::DenseSet<Value> varying;
    for (BlockArgument argument : step.getArguments())
      if (step.getArgAttr(argument.getArgNumber(), nn::kInputAttr))
        varying.insert(argument);
    for (Operation &op : step.front())
      if (llvm::any_of(op.getOperands(), [&](Value operand) {
            return varying.contains(operand);
          }))
        varying.insert(op.result_begin(), op.result_end());
    return varying;
  }

  /// How many chunks are worth it; 1, and why, if none.
  int64_t choose(const Head &head, std::string &why) {
    int64_t bytes = head.countLogitBytes();
    if (bytes < kLeastBytes || bytes < head.kept / kPart) {
      why = "logits are not among what makes the peak";
      return 1;
    }
    int64_t count =
        std::min<int64_t>(head.countRows() / kLeastRows,
                          llvm::divideCeil(head.shape.back(), head.inner));
    if (count < 2) {
      why = "chunks would have few rows";
      return 1;
    }
    while (count > 1 && !LossRows::findDim(head.shape, count))
      --count;
    // A micro-batch adds what its chunks have added up to that of those before.
    int64_t saved = bytes - bytes / std::max<int64_t>(1, count);
    if (head.hasGradient &&
        mesh.findAxisSize(dist::MeshOp::kMicroBatchAxis).value_or(1) > 1 &&
        saved <= getTensorBytes(head.product.getRhs().getType())) {
      why = "a gradient of the weight is as large";
      return 1;
    }
    return canChunk(head, count, why) ? count : 1;
  }

  bool canChunk(const Head &head, int64_t count, std::string &why) {
    why = "the first dimension of the logits is no multiple of that (" +
          std::to_string(head.shape.front()) + ")";
    std::optional<unsigned> dim = LossRows::findDim(head.shape, count);
    return dim && LossRows::findAlong(head.product, *dim, why);
  }

  void tell(nn::CrossEntropyOp loss, const Head &head, int64_t count,
            StringRef why) {
    if (!cost::isAskedForDecisions(getOperation()))
      return;
    auto describe = [&](int64_t number) -> cost::Alternative {
      return {number == 1 ? "whole" : std::to_string(number) + " chunks",
              std::nullopt, head.countLogitBytes() / number,
              std::to_string(head.countRows() / number) +
                  " rows of logits, and their gradient, at once"};
    };
    cost::Decision decision{"loss", getNodeName(loss), describe(count), {}, ""};
    if (count > 1)
      decision.others = {describe(1)};
    decision.reason =
        chunks != "auto" ? "loss_chunks"
        : count > 1 ? std::to_string(head.kept) + " bytes are kept beside them"
                    : why.str();
    cost::tell(getOperation(), decision);
  }

  static std::string getNodeName(Operation *op) {
    std::string name;
    forEachName(
        op->getLoc(),
        [&](StringRef node) {
          if (name.empty())
            name = node;
        },
        [](StringRef) {});
    return name.empty() ? "step" : name;
  }

  dist::MeshOp mesh;
  int64_t wanted = 0; ///< chunks; 0: as many as are worth it
};
} // namespace
} // namespace accel::parallel
