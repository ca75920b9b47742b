// Recognizes zeros through what places them.

#include "Zeros.h"

#include "dialects/Dist/Dist.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace accel;

bool parallel::isZeros(Value value) {
  while (isa_and_nonnull<dist::ReshardOp, dist::ConstraintOp>(
      value.getDefiningOp()))
    value = value.getDefiningOp()->getOperand(0);
  return matchPattern(value, m_AnyZeroFloat()) || matchPattern(value, m_Zero());
}
