// Collects the names that a location is made of.

#include "NodeNames.h"

#include "mlir/IR/Location.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace accel;

std::string report::describeNode(Operation *op) {
  llvm::SmallSetVector<StringRef, 4> names;
  op->getLoc()->walk([&](Location inner) {
    if (auto name = dyn_cast<NameLoc>(inner))
      names.insert(name.getName().getValue());
    return WalkResult::advance();
  });
  return llvm::join(names, ", ");
}
