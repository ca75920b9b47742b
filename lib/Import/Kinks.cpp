// Selections in place of minima and maxima: what is not selected has gradient
// 0.

#include "Kinks.h"

#include "lib/Onnx/NodeInfo.h"

using namespace mlir;
using namespace accel;
using namespace accel::import;
using P = nn::ComparePredicate;

bool accel::import::isTracedAs(const onnx::NodeProto &node, StringRef name) {
  return onnxio::tracedOperator(node).split('.').first == name;
}

// The gradient of the root at 0 would be infinite, and times the inner 0 NaN:
// where x is 0, f is not even asked about it.
Value accel::import::zeroAtZero(NodeImporter &n, Value x,
                                llvm::function_ref<Value(Value)> f) {
  Value zero = n.splatLike(x, 0);
  Value isZero = n.compare(P::eq, x, zero);
  Value inner = n.select(isZero, n.splatLike(x, 1), x);
  return n.select(isZero, zero, f(inner));
}

Value accel::import::clip(NodeImporter &n, Value x, Value low, Value high,
                          bool strict) {
  if (low)
    x = n.select(n.compare(strict ? P::le : P::lt, x, low), low, x);
  if (high)
    x = n.select(n.compare(strict ? P::ge : P::gt, x, high), high, x);
  return x;
}
