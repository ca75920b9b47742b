// Keeps the places of values: buffers for what commands write, views for what
// only reads them in another way, copies where no strides will do.

#include "Lowering.h"

#include "JoinedConcat.h"
#include "Views.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace accel;
using namespace accel::plan;

static int64_t getElementBytes(Type element) {
  return llvm::divideCeil(element.getIntOrFloatBitWidth(), 8);
}

Lowering::Lowering(ProgramOp program, const SymbolTable &module,
                   const Target &target, OpBuilder &commands)
    : program(program), module(module), target(target), commands(commands),
      buffers(program) {
  findSharedStates();
}

BufferOp Lowering::createBuffer(Location loc, StringRef name, Role role,
                                Space space, RankedTensorType type) {
  OpBuilder builder(program.getContext());
  int64_t bytes =
      type.getNumElements() * getElementBytes(type.getElementType());
  auto buffer = BufferOp::create(
      builder, loc, builder.getStringAttr(name), role, space, /*offset=*/-1,
      bytes, /*slots=*/1, /*slot_stride=*/bytes, /*alias_of=*/nullptr,
      /*value=*/nullptr, /*source=*/nullptr, /*part=*/nullptr);
  buffers.insert(buffer);
  return buffer;
}

void Lowering::setPlace(Value value, BufferOp buffer) {
  places[value] = getWhole(buffer, cast<RankedTensorType>(value.getType()));
}

Place Lowering::getWhole(BufferOp buffer, RankedTensorType type) {
  return Place{buffer,
               StridedView::contiguous(type.getShape()),
               type.getElementType(),
               {}};
}

ViewAttr Lowering::getView(Place place) {
  MLIRContext *context = place.element.getContext();
  return ViewAttr::get(
      context, FlatSymbolRefAttr::get(place.buffer.getSymNameAttr()),
      place.view.offset * getElementBytes(place.element), place.axes,
      place.element, place.view.shape, place.view.strides);
}

Place Lowering::getPlace(Value value) {
  auto found = places.find(value);
  if (found != places.end())
    return found->second;
  Operation *op = value.getDefiningOp();
  auto type = cast<RankedTensorType>(value.getType());
  ElementsAttr constant;
  if (matchPattern(op, m_Constant(&constant))) {
    BufferOp &buffer = constants[constant];
    if (!buffer) {
      buffer = createBuffer(op->getLoc(), "constant", Role::constant, type);
      buffer.setValueAttr(constant);
    }
    setPlace(value, buffer);
    return places[value];
  }
  // Anything else without a place of its own is a view of its operand.
  auto source = cast<KernelSourceOpInterface>(op);
  Place place = getPlace(op->getOperand(0));
  if (failed(source.applyToView(place.view))) {
    place = getContiguous(op->getOperand(0), op->getLoc());
    LogicalResult viewed = source.applyToView(place.view);
    assert(succeeded(viewed) && "a view of a tensor without gaps");
    (void)viewed;
  }
  places[value] = place;
  return place;
}

Place Lowering::getContiguous(Value value, Location reader) {
  Place place = getPlace(value);
  if (place.view.isContiguous())
    return place;
  // Every reader may have the copy.
  places[value] = copy(place, reader, Role::activation);
  return places[value];
}

Place Lowering::copy(Place source, Location reader, Role role, Space space) {
  auto type = RankedTensorType::get(source.view.shape, source.element);
  Place target;
  target.buffer = createBuffer(
      reader, (source.buffer.getSymName() + ".copy").str(), role, space, type);
  target.view = StridedView::contiguous(source.view.shape);
  target.element = source.element;
  auto command = CopyOp::create(commands, reader, getView(source),
                                getView(target), "compute");
  command->setAttr(kInsertedByAttr,
                   commands.getStringAttr("local-lower-to-plan"));
  return target;
}

Place Lowering::createResult(Value value, Location loc) {
  auto type = cast<RankedTensorType>(value.getType());
  Place place;
  if (nn::ConcatOp concat = findConcat(value))
    for (const ConcatPiece &piece : getConcatPieces(concat))
      if (piece.result == value) {
        Value joined = concat.getResult();
        place = places.count(joined) ? places[joined]
                                     : createResult(joined, concat.getLoc());
        place.view = piece.view;
        return places[value] = place;
      }
  place.element = type.getElementType();
  place.buffer =
      createBuffer(loc, value.getDefiningOp()->getName().stripDialect(),
                   Role::activation, type);
  place.view = StridedView::contiguous(type.getShape());
  if (std::optional<PermutingReader> reader = getPermutingReader(value)) {
    StridedView permuted = StridedView::contiguous(
        cast<RankedTensorType>(reader->op->getResult(0).getType()).getShape());
    for (auto [dim, from] : llvm::enumerate(reader->permutation))
      place.view.strides[from] = permuted.strides[dim];
  }
  places[value] = place;
  return place;
}
