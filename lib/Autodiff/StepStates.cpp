// A state is declared by an op, and bound to an argument by an attribute.

#include "StepStates.h"

using namespace mlir;
using namespace accel;
using namespace accel::autodiff;

FailureOr<SmallVector<Write>> autodiff::declareStates(func::FuncOp entry,
                                                      SymbolTable &symbols,
                                                      BlockArgument counters,
                                                      ArrayRef<NewState> wanted,
                                                      nn::StateRole role) {
  OpBuilder builder(entry);
  SmallVector<Write> added;
  SmallVector<Type> types;
  SmallVector<DictionaryAttr> attributes;
  SmallVector<Location> locations;
  for (auto &[name, type, chunk, first, like] : wanted) {
    Type element = type.getElementType();
    TypedAttr value = builder.getZeroAttr(element);
    if (first != 0 && isa<FloatType>(element))
      value = builder.getFloatAttr(element, first);
    else if (first != 0)
      value = builder.getIntegerAttr(element, static_cast<int64_t>(first));
    if (Operation *other = symbols.lookup(name))
      return other->emitError()
             << "expected no symbol '" << name
             << "' in a forward program: training needs the name";
    Attribute init = DenseElementsAttr::get(type, value);
    TypeAttr stored;
    if (nn::StateOp other = like) {
      init = other.getInit();
      stored = other.getStoredAttr();
    }
    auto state = nn::StateOp::create(
        builder, NameLoc::get(builder.getStringAttr(name)), name, type, init,
        /*aliases=*/nullptr, /*initializers=*/nullptr, stored,
        /*logical=*/nullptr, /*frozen=*/false, role, chunk);
    symbols.insert(state);
    added.push_back({state, nullptr, nullptr});
    types.push_back(type);
    attributes.push_back(builder.getDictionaryAttr(builder.getNamedAttr(
        nn::kStateAttr, FlatSymbolRefAttr::get(state.getSymNameAttr()))));
    locations.push_back(state.getLoc());
  }
  unsigned place = counters ? counters.getArgNumber() : entry.getNumArguments();
  if (failed(entry.insertArguments(SmallVector<unsigned>(wanted.size(), place),
                                   types, attributes, locations)))
    return failure();
  for (Write &write : added)
    write.old = entry.getArgument(place++);
  return added;
}
