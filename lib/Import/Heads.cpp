// Splitting of what has all heads in one dimension.

#include "Heads.h"

using namespace mlir;
using namespace accel;

Value import::splitHeads(NodeImporter &n, Value value, int64_t heads,
                         StringRef attribute) {
  if (NodeImporter::rank(value) == 4)
    return value;
  ArrayRef<int64_t> shape = NodeImporter::shape(value);
  if (shape.size() != 3 || heads <= 0 || shape[2] % heads != 0) {
    n.error() << "expected a tensor of rank 4, or of rank 3 with '" << attribute
              << "' dividing its last dimension, found "
              << (value ? value.getType() : Type()) << " and " << heads;
    return nullptr;
  }
  return n.transpose(
      n.reshape(value, {shape[0], shape[1], heads, shape[2] / heads}),
      {0, 2, 1, 3});
}
