// Operands whose values import must know: shapes, axes, indices.

#include "NodeImporter.h"

#include "Tensors.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace accel;
using namespace accel::import;

/// The name of the first input of the model that the value is computed from;
/// empty if it is from none.
static std::string findInput(Value value) {
  llvm::SetVector<Value> reached;
  reached.insert(value);
  for (size_t next = 0; next < reached.size(); ++next) {
    if (Operation *op = reached[next].getDefiningOp()) {
      reached.insert(op->operand_begin(), op->operand_end());
      continue;
    }
    auto argument = cast<BlockArgument>(reached[next]);
    auto function = dyn_cast<func::FuncOp>(argument.getOwner()->getParentOp());
    if (!function)
      continue;
    if (auto name = function.getArgAttrOfType<StringAttr>(
            argument.getArgNumber(), nn::kInputAttr))
      return name.str();
  }
  return "";
}

void NodeImporter::refuseComputed(unsigned index) {
  std::string input = findInput(operand(index));
  InFlightDiagnostic message = error();
  message << "expected operand #" << index << " ('" << node.input(index)
          << "') to be known at compile time, found a value computed at run "
             "time";
  if (!input.empty())
    message << " from input '" << input << "': bind it by --input " << input
            << "=FILE";
}

SmallVector<int64_t> NodeImporter::constantInts(unsigned index) {
  Value value = operand(index);
  if (!failed && graph.choices.isSize(value)) {
    error()
        << "expected operand #" << index
        << " to be known at compile time, found the number of elements that "
           "NonZero chooses at run time";
    return {};
  }
  DenseElementsAttr known = constantOf(value);
  if (known && isa<IntegerType>(known.getElementType()))
    return integerElements(known);
  if (!failed && known)
    error() << "expected integers as operand #" << index << ", found "
            << known.getType();
  else if (!failed && value)
    refuseComputed(index);
  else if (!failed)
    error() << "expected an operand #" << index;
  return {};
}

int64_t NodeImporter::constantInt(unsigned index) {
  SmallVector<int64_t> values = constantInts(index);
  if (values.size() == 1)
    return values[0];
  if (!failed)
    error() << "expected one number as operand #" << index << ", found "
            << values.size();
  return 0;
}
