// Joins neighbours until few are left.

#include "dialects/NN/Concat.h"

#include "llvm/ADT/SmallVector.h"

using namespace mlir;
using namespace accel;

Value nn::joinInParts(ArrayRef<Value> values,
                      llvm::function_ref<Value(ArrayRef<Value>)> join) {
  SmallVector<Value> pieces(values);
  while (pieces.size() > kMostJoined) {
    SmallVector<Value> fewer;
    for (ArrayRef<Value> rest = pieces; !rest.empty();
         rest = rest.drop_front(std::min(rest.size(), kMostJoined))) {
      ArrayRef<Value> some =
          rest.take_front(std::min(rest.size(), kMostJoined));
      fewer.push_back(some.size() == 1 ? some.front() : join(some));
    }
    pieces = std::move(fewer);
  }
  return join(pieces);
}
