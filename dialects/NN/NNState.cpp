// Verification and folding of states and constants.

#include "dialects/NN/NN.h"
#include "dialects/NN/NNDims.h"

using namespace mlir;
using namespace accel::nn;

static LogicalResult verifyPermutation(Operation *op, ArrayRef<int64_t> perm,
                                       int64_t rank, StringRef what) {
  SmallVector<bool> seen(rank, false);
  bool valid = static_cast<int64_t>(perm.size()) == rank;
  for (int64_t dim : perm) {
    valid = valid && dim >= 0 && dim < rank && !seen[dim];
    if (valid)
      seen[dim] = true;
  }
  if (valid || perm.empty())
    return success();
  return op->emitOpError() << "expected the permutation of " << what
                           << " to permute " << rank << " dimensions, found ["
                           << perm << "]";
}

RankedTensorType StateOp::getLogicalType() {
  auto type = cast<RankedTensorType>(getType());
  std::optional<ArrayRef<int64_t>> logical = getLogical();
  return logical ? RankedTensorType::get(*logical, type.getElementType())
                 : type;
}

SmallVector<FlatSymbolRefAttr> StateOp::getMembers() {
  auto names = dyn_cast<ArrayAttr>(getInit());
  if (!names)
    return {};
  return llvm::to_vector(names.getAsRange<FlatSymbolRefAttr>());
}

/// What `verifySymbolUses` needs, which sees the members.
static LogicalResult verifyStack(StateOp stack, ArrayAttr members,
                                 RankedTensorType type) {
  auto isName = [](Attribute name) { return isa<FlatSymbolRefAttr>(name); };
  if (members.empty() || !llvm::all_of(members, isName) || type.getRank() < 1 ||
      static_cast<int64_t>(members.size()) != type.getDimSize(0) ||
      stack.getRole() != StateRole::parameter || stack.getAliases() ||
      stack.getInitializers())
    return stack.emitOpError()
           << "expected a parameter without other names and the name of a "
              "member for each of its rows, found "
           << type << " = " << members;
  return success();
}

LogicalResult StateOp::verifySymbolUses(SymbolTableCollection &symbols) {
  RankedTensorType type = getLogicalType();
  llvm::SmallDenseSet<Attribute> seen;
  for (FlatSymbolRefAttr name : getMembers()) {
    auto member = symbols.lookupNearestSymbolFrom<StateOp>(*this, name);
    if (!member || !seen.insert(name).second)
      return emitOpError() << "expected other states as members, each once, "
                              "found "
                           << name;
    auto own = cast<RankedTensorType>(member.getType());
    if (own.getShape() != type.getShape().drop_front() ||
        own.getElementType() != type.getElementType() ||
        member.getRole() != StateRole::parameter || member.getLogical() ||
        member.getAliases() || member.getFrozen() != getFrozen() ||
        isa<ArrayAttr>(member.getInit()))
      return emitOpError() << "expected a member that is one of its rows, "
                              "without aliases, and frozen as it is, found "
                           << name << " of " << own;
  }
  return success();
}

LogicalResult StateOp::verify() {
  auto type = cast<RankedTensorType>(getType());
  // Files have two in a byte, of which ranks could read no piece.
  if (isa<Float4E2M1FNType>(type.getElementType()))
    return emitOpError() << "expected numbers that take whole bytes in files, "
                            "found "
                         << type;
  if (std::optional<ArrayRef<int64_t>> logical = getLogical()) {
    auto within = [](auto sizes) {
      auto [size, padded] = sizes;
      return size >= 0 && size <= padded;
    };
    if (static_cast<int64_t>(logical->size()) != type.getRank() ||
        !llvm::all_of(llvm::zip(*logical, type.getShape()), within))
      return emitOpError() << "expected a 'logical' shape within " << type
                           << ", found [" << *logical << "]";
  }
  type = getLogicalType();
  if (getRole() == StateRole::residual) {
    // Terms of zero are zeros.
    auto first = dyn_cast<SplatElementsAttr>(getInit());
    if (type.getRank() < 1 || getLogical() || !first ||
        !isa<FloatType>(type.getElementType()) ||
        !first.getSplatValue<APFloat>().isZero())
      return emitOpError() << "expected a residual of floats that begins with "
                              "a dimension of terms, all zeros, found "
                           << type << " = " << getInit();
  }
  if (ArrayAttr initializers = getInitializersAttr())
    for (Attribute attribute : initializers) {
      auto initializer = dyn_cast<InitializerAttr>(attribute);
      if (!initializer)
        return emitOpError()
               << "expected #nn.initializer in 'initializers', found "
               << attribute;
      if (failed(verifyPermutation(*this, initializer.getPermutation(),
                                   type.getRank(), "an initializer")))
        return failure();
    }
  Type stored = getStored().value_or(type.getElementType());
  if (getStored() && (!isa<RangeAttr>(getInit()) || !isa<FloatType>(stored) ||
                      !isa<FloatType>(type.getElementType())))
    return emitOpError() << "expected 'stored' only for floats in a file, "
                            "found "
                         << stored;
  if (auto file = dyn_cast<RangeAttr>(getInit())) {
    uint64_t bytes = type.getNumElements() *
                     llvm::divideCeil(stored.getIntOrFloatBitWidth(), 8);
    if (file.getBytes() != bytes)
      return emitOpError() << "expected a file range of " << bytes
                           << " bytes for " << type << ", found "
                           << file.getBytes();
    return verifyPermutation(*this, file.getPermutation(), type.getRank(),
                             "the file range");
  }
  if (auto members = dyn_cast<ArrayAttr>(getInit()))
    return verifyStack(*this, members, type);
  auto elements = dyn_cast<ElementsAttr>(getInit());
  if (!elements)
    return emitOpError() << "expected a range of a file, elements or members "
                            "as 'init', found "
                         << getInit();
  if (!sameShapesAndElements(elements.getShapedType(), type))
    return emitOpError() << "expected 'init' of type " << type << ", found "
                         << elements.getShapedType();
  return success();
}

LogicalResult GradientOp::inferReturnTypes(MLIRContext *context,
                                           std::optional<Location> loc,
                                           GradientOp::Adaptor adaptor,
                                           SmallVectorImpl<Type> &types) {
  auto type = cast<RankedTensorType>(adaptor.getInput().getType());
  types.push_back(
      RankedTensorType::get(type.getShape(), type.getElementType()));
  return success();
}

LogicalResult GradientOp::verifySymbolUses(SymbolTableCollection &symbols) {
  auto state = symbols.lookupNearestSymbolFrom<StateOp>(*this, getStateAttr());
  if (!state)
    return emitOpError() << "expected a state, found none called "
                         << getStateAttr();
  return success();
}

LogicalResult CutOp::verify() {
  int64_t from = getFrom(), to = getTo();
  if (from < 0 || to < 0 || from == to)
    return emitOpError() << "expected two chunks, found " << from << " and "
                         << to;
  return success();
}

OpFoldResult ConstantOp::fold(FoldAdaptor) { return getValue(); }

LogicalResult ConstantOp::verify() {
  if (!sameShapesAndElements(getValue().getShapedType(), getType()))
    return emitOpError() << "expected a value of type " << getType()
                         << ", found " << getValue().getShapedType();
  if (cast<RankedTensorType>(getValue().getShapedType()).getEncoding())
    return emitOpError() << "expected a value without encoding, found "
                         << getValue().getShapedType();
  return success();
}

LogicalResult IotaOp::verify() {
  return verifyDim(getLoc(), getDim(), getType().getRank());
}
