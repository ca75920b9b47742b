// Which command executes which op of a task: products, attention, kernels.

#include "GemmAccumulate.h"
#include "GemmWiden.h"
#include "Lowering.h"
#include "Views.h"
#include "dialects/Interfaces/Cost.h"
#include "lib/Plan/ComputeStream.h"
#include "lib/Plan/Rows.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace accel;
using namespace accel::plan;

LogicalResult Lowering::lower(Operation *op) {
  if (isView(op) || op->hasTrait<OpTrait::ConstantLike>())
    return success(); // placed when something reads it
  if (places.count(op->getResult(0)))
    return success(); // a sum that its product has made
  return llvm::TypeSwitch<Operation *, LogicalResult>(op)
      .Case([&](nn::MatmulOp op) { return lowerMatmul(op); })
      .Case([&](nn::GroupedMatmulOp op) { return lowerGroupedMatmul(op); })
      .Case([&](nn::GroupedMatmulGradOp op) {
        return lowerGroupedMatmulGrad(op);
      })
      .Case([&](nn::ConvOp op) {
        return lowerConvolution(op, Convolution::forward, op.getStrides(),
                                op.getDilations(), op.getLow());
      })
      .Case([&](nn::ConvInputGradOp op) {
        return lowerConvolution(op, Convolution::input_grad, op.getStrides(),
                                op.getDilations(), op.getLow());
      })
      .Case([&](nn::ConvWeightGradOp op) {
        return lowerConvolution(op, Convolution::weight_grad, op.getStrides(),
                                op.getDilations(), op.getLow());
      })
      .Case([&](nn::DealRowsOp op) { return lowerDealRows(op); })
      .Case([&](nn::AttentionOp op) { return lowerAttention(op); })
      .Case([&](nn::AttentionGradOp op) { return lowerAttentionGrad(op); })
      .Case([&](func::CallOp op) { return lowerCall(op); })
      .Case([&](dist::CollectiveOpInterface op) { return lowerCollective(op); })
      .Default([](Operation *op) {
        return op->emitOpError()
               << "expected an op that a command of the plan executes (a "
                  "product, attention, a kernel or a collective)";
      });
}

static void swapLastDims(StridedView &view) {
  size_t rank = view.shape.size();
  std::swap(view.shape[rank - 2], view.shape[rank - 1]);
  std::swap(view.strides[rank - 2], view.strides[rank - 1]);
}

LogicalResult Lowering::lowerMatmul(nn::MatmulOp op) {
  Location loc = op.getLoc();
  auto getOperand = [&](Value value, bool transpose) {
    Place place = getPlace(value);
    if (!isMatrix(place.view))
      place = getContiguous(value, loc);
    if (transpose)
      swapLastDims(place.view);
    return place;
  };
  Place a = getOperand(op.getLhs(), op.getTransposeLhs());
  Place b = getOperand(op.getRhs(), op.getTransposeRhs());

  // The sum with the bias is what the command writes, where it can.
  Value written = op.getResult();
  ViewAttr bias;
  Operation *reader = written.hasOneUse() ? *written.user_begin() : nullptr;
  while (isa_and_present<nn::ReshapeOp>(reader) && reader->hasOneUse())
    reader = *reader->user_begin();
  std::optional<GemmBias> fused;
  if (reader)
    fused = matchGemmBias(reader, target);
  if (fused && fused->matmul == op) {
    written = reader->getResult(0);
    Place row = getPlace(fused->bias);
    LogicalResult flat = row.view.reshape({op.getType().getShape().back()});
    assert(succeeded(flat) && "arguments and constants have no gaps");
    (void)flat;
    bias = getView(row);
    loc = FusedLoc::get(op.getContext(), {loc, reader->getLoc()});
  }
  // So is the widened product,
  if (!bias && written.hasOneUse() &&
      matchGemmWiden(*written.user_begin(), target) == op) {
    Operation *cast = *written.user_begin();
    written = cast->getResult(0);
    loc = FusedLoc::get(op.getContext(), {loc, cast->getLoc()});
  }
  // and the sum with a state, or with other products.
  std::optional<GemmAccumulate> accumulated;
  if (!bias && reader) {
    Operation *sum = *op->user_begin();
    if (auto cast = dyn_cast<nn::CastOp>(sum); cast && cast->hasOneUse())
      sum = *cast->user_begin();
    accumulated = matchGemmAccumulate(sum, target);
    if (accumulated && accumulated->matmul != op)
      accumulated.reset(); // it is what the other product adds to
    if (accumulated) {
      written = sum->getResult(0);
      loc = FusedLoc::get(op.getContext(), {loc, sum->getLoc()});
      places[written] = getPlace(accumulated->onto);
      if (accumulated->cast)
        places[accumulated->cast] = places[written];
    }
  }
  Place c = accumulated ? places[written] : createResult(written, loc);
  if (failed(c.view.reshape(op.getType().getShape()))) {
    // Its reader's order does not suit the product: that one reads a view.
    c.view = StridedView::contiguous(
        cast<RankedTensorType>(written.getType()).getShape());
    places[written] = c;
    LogicalResult reshaped = c.view.reshape(op.getType().getShape());
    assert(succeeded(reshaped) && "a tensor without gaps");
    (void)reshaped;
  }

  // One product of many rows rather than many products of few.
  if (b.view.shape.size() == 2 && a.view.shape.size() > 2) {
    int64_t columns = a.view.shape.back();
    int64_t rows =
        ShapedType::getNumElements(ArrayRef<int64_t>(a.view.shape).drop_back());
    StridedView flatA = a.view, flatC = c.view;
    if (succeeded(flatA.reshape({rows, columns})) &&
        succeeded(flatC.reshape({rows, b.view.shape.back()})) &&
        isMatrix(flatA) && isRowMajorMatrix(flatC)) {
      a.view = flatA;
      c.view = flatC;
    }
  }
  auto gemm = GemmOp::create(
      commands, loc, getView(a), getView(b), getView(c), bias,
      /*packed=*/nullptr, /*scratch=*/nullptr,
      /*accumulate=*/accumulated.has_value(), /*form=*/nullptr, kComputeStream);
  return gemm.verify();
}

ViewAttr Lowering::getRows(Value value, Location reader) {
  Place place = getPlace(value);
  return getView(isRowMajorMatrix(place.view) ? place
                                              : getContiguous(value, reader));
}

LogicalResult Lowering::lowerGroupedMatmul(nn::GroupedMatmulOp op) {
  Location loc = op.getLoc();
  Place matrices = getPlace(op.getRhs());
  if (!isMatrix(matrices.view))
    matrices = getContiguous(op.getRhs(), loc);
  if (op.getTransposeRhs())
    swapLastDims(matrices.view);
  ViewAttr rows = getRows(op.getLhs(), loc);
  ViewAttr groups = getView(getContiguous(op.getGroups(), loc));
  auto gemm = GroupedGemmOp::create(
      commands, loc, rows, getView(matrices), groups,
      getView(createResult(op.getResult(), loc)), /*order=*/nullptr,
      /*scratch=*/nullptr, /*form=*/nullptr, kComputeStream);
  return gemm.verify();
}

LogicalResult Lowering::lowerDealRows(nn::DealRowsOp op) {
  Location loc = op.getLoc();
  ViewAttr groups = getView(getContiguous(op.getGroups(), loc)),
           rank = getView(getContiguous(op.getRank(), loc));
  SmallVector<ViewAttr> results;
  for (Value result : op.getResults())
    results.push_back(getView(createResult(result, loc)));
  auto deal = DealRowsOp::create(commands, loc, groups, rank, results[0],
                                 results[1], results[2], op.getNumGroups(),
                                 op.getRanks(), kComputeStream);
  return deal.verify();
}

LogicalResult Lowering::lowerGroupedMatmulGrad(nn::GroupedMatmulGradOp op) {
  Location loc = op.getLoc();
  ViewAttr lhs = getRows(op.getLhs(), loc), rhs = getRows(op.getRhs(), loc);
  ViewAttr groups = getView(getContiguous(op.getGroups(), loc));
  auto grad = GroupedGemmGradOp::create(
      commands, loc, lhs, rhs, groups,
      getView(createResult(op.getResult(), loc)), /*order=*/nullptr,
      /*scratch=*/nullptr, /*accumulate=*/false, /*form=*/nullptr,
      kComputeStream);
  return grad.verify();
}

ViewAttr Lowering::getMask(Value value, Location reader) {
  if (!value)
    return {};
  Place place = getPlace(value);
  // What is repeated is said by a size of 1, not by a stride of 0.
  for (size_t dim = 0; dim < 3; ++dim)
    if (place.view.strides[dim] == 0)
      place.view.shape[dim] = 1;
  if (place.view.shape[3] != 1 && place.view.strides[3] != 1)
    place = getContiguous(value, reader);
  return getView(place);
}

LogicalResult Lowering::lowerAttention(nn::AttentionOp op) {
  Location loc = op.getLoc();
  ViewAttr query = getRows(op.getQuery(), loc), key = getRows(op.getKey(), loc),
           value = getRows(op.getValue(), loc),
           mask = getMask(op.getMask(), loc);
  Place output = createResult(op.getResult(), loc);
  ViewAttr logSumExp;
  if (!op.getLogSumExp().use_empty())
    logSumExp = getView(createResult(op.getLogSumExp(), loc));
  AttentionOp::create(commands, loc, query, key, value, mask, getView(output),
                      logSumExp, /*scratch=*/nullptr, op.getScale(),
                      op.getCausal(), op.getZeroMaskedRows(), op.getRowOffset(),
                      op.getColumnOffset(), op.getRowStepsAttr(),
                      op.getColumnStepsAttr(), op.getTurn(), op.getStride(),
                      /*form=*/nullptr, kComputeStream);
  return success();
}

LogicalResult Lowering::lowerAttentionGrad(nn::AttentionGradOp op) {
  Location loc = op.getLoc();
  ViewAttr query = getRows(op.getQuery(), loc), key = getRows(op.getKey(), loc),
           value = getRows(op.getValue(), loc),
           output = getRows(op.getOutput(), loc),
           gradient = getRows(op.getGradient(), loc),
           mask = getMask(op.getMask(), loc), ofLogSumExp;
  ViewAttr logSumExp = getView(getContiguous(op.getLogSumExp(), loc));
  if (Value given = op.getLogSumExpGradient())
    ofLogSumExp = getView(getContiguous(given, loc));
  SmallVector<ViewAttr> results;
  for (Value result : op.getResults())
    results.push_back(getView(createResult(result, loc)));
  AttentionGradOp::create(
      commands, loc, query, key, value, output, logSumExp, gradient,
      ofLogSumExp, mask, results[0], results[1], results[2],
      /*scratch=*/nullptr, op.getScale(), op.getCausal(),
      op.getZeroMaskedRows(), op.getRowOffset(), op.getColumnOffset(),
      op.getRowStepsAttr(), op.getColumnStepsAttr(), op.getTurn(),
      op.getStride(), /*form=*/nullptr, kComputeStream);
  return success();
}

LogicalResult Lowering::lowerCall(func::CallOp op) {
  auto kernel = module.lookup<func::FuncOp>(op.getCalleeAttr().getAttr());
  auto rows =
      kernel ? kernel->getAttrOfType<IntegerAttr>(kRowsAttr) : IntegerAttr();
  if (!rows || !kernel->hasAttr(kKernelAttr))
    return op.emitOpError() << "expected a call of a function with attributes '"
                            << kKernelAttr << "' and '" << kRowsAttr << "'";
  SmallVector<Attribute> inputs, outputs;
  for (Value input : op.getOperands())
    inputs.push_back(getView(getContiguous(input, op.getLoc())));
  for (Value output : op.getResults()) {
    setPlace(output,
             createBuffer(op.getLoc(), (op.getCallee() + ".result").str(),
                          Role::activation,
                          cast<RankedTensorType>(output.getType())));
    outputs.push_back(getView(places[output]));
  }
  int64_t count = std::max<int64_t>(rows.getInt(), 1);
  int64_t grid = target.chooseGrid(kernel, count, getOperandAndResultBytes(op));
  KernelOp::create(
      commands, op.getLoc(), op.getCallee(), commands.getArrayAttr(inputs),
      commands.getArrayAttr(outputs), /*scratch=*/nullptr, rows.getInt(), grid,
      /*form=*/nullptr, kComputeStream);
  return success();
}
