// Import of matrix products.

#include "lib/Import/OpTable.h"

using namespace mlir;
using namespace accel;
using namespace accel::import;

static LogicalResult importMatMul(NodeImporter &n) {
  return n.finish(n.matmul(n.operand(0), n.operand(1)));
}

/// alpha · A' B' + beta · C
static LogicalResult importGemm(NodeImporter &n) {
  double alpha = n.floatAttr("alpha", 1), beta = n.floatAttr("beta", 1);
  bool transposeA = n.intAttr("transA", 0), transposeB = n.intAttr("transB", 0);
  Value a = n.operand(0), b = n.operand(1), c = n.operand(2);
  if (NodeImporter::rank(a) != 2 || NodeImporter::rank(b) != 2)
    return n.error() << "expected matrices, found " << a.getType() << " and "
                     << b.getType();
  Value result = n.matmul(a, b, transposeA, transposeB);
  if (alpha != 1)
    result = n.binary<nn::MulOp>(result, n.splatLike(result, alpha));
  if (c && beta != 0) {
    if (beta != 1)
      c = n.binary<nn::MulOp>(c, n.splatLike(c, beta));
    result = n.binary<nn::AddOp>(result, c);
  }
  return n.finish(result);
}

ArrayRef<OpRow> accel::import::linearOps() {
  static const OpRow rows[] = {
      {"", "Gemm", 7, 2, 3, importGemm},
      {"", "MatMul", 1, 2, 2, importMatMul},
  };
  return rows;
}
