// Sends the codes that a sum over ranks is of, and not numbers of 32 bits that
// are made of them.

#include "dialects/NN/Entry.h"
#include "dialects/NN/NN.h"
#include "lib/Parallel/Passes.h"

using namespace mlir;

namespace accel::parallel {
#define GEN_PASS_DEF_SENDCODESPASS
#include "lib/Parallel/Passes.h.inc"

namespace {
/// A sum over ranks that are the elements of dimension 0 of codes of 8 bits.
struct CodeSum {
  dist::ReshardOp sum;
  nn::ReduceOp reduce;
  nn::CastOp widen;
};

/// One mesh.
class CodeSender {
public:
  explicit CodeSender(dist::MeshOp mesh) : mesh(mesh) {}

  static std::optional<CodeSum> match(dist::ReshardOp sum);
  void send(CodeSum found);

private:
  SmallVector<dist::AxesAttr> choosePieces(CodeSum found);

  dist::MeshOp mesh;
};
} // namespace

static dist::ShardingAttr shardingOf(Value value) {
  return dist::ShardingAttr::of(value.getType());
}

static bool isCode(Type element) {
  return isa<FloatType>(element) && element.getIntOrFloatBitWidth() == 8;
}

std::optional<CodeSum> CodeSender::match(dist::ReshardOp sum) {
  dist::ShardingAttr from = shardingOf(sum.getInput()), to = shardingOf(sum);
  auto reduce = sum.getInput().getDefiningOp<nn::ReduceOp>();
  if (!from.isPartial() || to.isPartial() ||
      from.getReduction() != dist::Reduction::sum || !reduce ||
      reduce.getKind() != nn::ReductionKind::sum || !reduce->hasOneUse() ||
      reduce.getDims() != ArrayRef<int64_t>{0})
    return std::nullopt;
  auto widen = reduce.getInput().getDefiningOp<nn::CastOp>();
  if (!widen || !widen->hasOneUse() ||
      !isCode(getElementTypeOrSelf(widen.getInput())))
    return std::nullopt;
  dist::ShardingAttr codes = shardingOf(widen.getInput());
  if (codes.isPartial() || !llvm::equal(codes.getDims().front().getNames(),
                                        from.getPartial().getNames()))
    return std::nullopt;
  return CodeSum{sum, reduce, widen};
}

/// What a rank adds up: the piece that it is to have; else all, while the codes
/// of all ranks are no more bytes than their sum, or a piece, which others get
/// from it.
SmallVector<dist::AxesAttr> CodeSender::choosePieces(CodeSum found) {
  dist::ShardingAttr to = shardingOf(found.sum);
  dist::AxesAttr ranks = shardingOf(found.sum.getInput()).getPartial();
  SmallVector<dist::AxesAttr> dims(to.getDims());
  for (dist::AxesAttr dim : dims)
    for (StringAttr axis : ranks.getNames())
      if (dim.contains(axis))
        return dims;
  auto type = cast<RankedTensorType>(found.sum.getType());
  int64_t size = mesh.getGroupSize(ranks);
  if (size * 8 <= type.getElementTypeBitWidth())
    return dims;
  for (auto [dim, axes] : llvm::enumerate(dims))
    if (axes.empty() && type.getDimSize(dim) % size == 0) {
      axes = ranks;
      break;
    }
  return dims;
}

void CodeSender::send(CodeSum found) {
  auto [sum, reduce, widen] = found;
  SmallVector<dist::AxesAttr> dims = choosePieces(found);
  dist::ShardingAttr to = shardingOf(sum);
  auto ofSum = dist::ShardingAttr::get(sum.getContext(), to.getMesh(), dims);
  dims.insert(dims.begin(),
              dist::AxesAttr::get(sum.getContext(), ArrayRef<StringRef>()));
  auto ofCodes = dist::ShardingAttr::get(sum.getContext(), to.getMesh(), dims);
  auto place = [](Value value, dist::ShardingAttr sharding) {
    auto type = cast<RankedTensorType>(value.getType());
    return RankedTensorType::get(type.getShape(), type.getElementType(),
                                 sharding);
  };
  OpBuilder builder(sum);
  // As the sum is that it stands for: of a gather unit, inserted by whom.
  auto move = cast<dist::ReshardOp>(builder.clone(*sum));
  move.getInputMutable().assign(widen.getInput());
  move.getResult().setType(place(widen.getInput(), ofCodes));
  Operation *wide = builder.clone(*widen);
  wide->setOperand(0, move);
  wide->getResult(0).setType(place(widen.getResult(), ofCodes));
  Operation *added = builder.clone(*reduce);
  added->setOperand(0, wide->getResult(0));
  added->getResult(0).setType(place(reduce.getResult(), ofSum));
  if (ofSum == to) {
    sum.replaceAllUsesWith(added->getResult(0));
    sum.erase();
  } else {
    sum.getInputMutable().assign(added->getResult(0));
  }
  reduce.erase();
  widen.erase();
}

namespace {
struct SendCodesPass : impl::SendCodesPassBase<SendCodesPass> {
  using Base::Base;

  void runInOrder() override {
    dist::MeshOp mesh = dist::MeshOp::of(getOperation());
    if (!mesh)
      return;
    CodeSender sender(mesh);
    for (func::FuncOp entry : nn::getEntries(getOperation())) {
      if (failed(nn::requireTypes(entry, /*placed=*/true)))
        return signalPassFailure();
      for (auto sum : llvm::to_vector(entry.front().getOps<dist::ReshardOp>()))
        if (std::optional<CodeSum> found = CodeSender::match(sum))
          sender.send(*found);
    }
  }
};
} // namespace
} // namespace accel::parallel
