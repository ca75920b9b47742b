// Means, which are sums times a constant, or over the number of elements that
// are chosen.

#include "NodeImporter.h"

using namespace mlir;
using namespace accel;
using namespace accel::import;

Value NodeImporter::mean(Value value, ArrayRef<int64_t> dims, bool keepDims) {
  if (failed || !value)
    return nullptr;
  int64_t count = 1;
  std::optional<Choices::Chosen> chosen = graph.choices.find(value);
  if (chosen && !llvm::is_contained(dims, chosen->dim))
    chosen = std::nullopt;
  for (int64_t dim : dims)
    count *= chosen && dim == chosen->dim ? 1 : shape(value)[dim];
  Value sum = reduce(nn::ReductionKind::sum, value, dims, keepDims);
  if (!sum)
    return nullptr;
  if (chosen) {
    Value number =
        create<nn::MulOp>({graph.choices.count(*this, *chosen, element(sum)),
                           splat({}, element(sum), count)});
    return binary<nn::DivOp>(sum, number);
  }
  if (!isFloat(sum))
    return create<nn::DivOp>({sum, splatLike(sum, count)});
  Value inverse = splatLike(sum, 1.0 / count);
  if (graph.options.marksMeans)
    return create<nn::MulOp>({sum, inverse}, unit(nn::kMeanAttr));
  return create<nn::MulOp>({sum, inverse});
}
