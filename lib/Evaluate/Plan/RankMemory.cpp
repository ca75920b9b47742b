// Addresses and bytes of a virtual rank.

#include "lib/Evaluate/Plan/RankMemory.h"

using namespace mlir;
using namespace accel;
using namespace accel::evaluate;

static constexpr char kPoison = static_cast<char>(0xFF);

LogicalResult RankMemory::place(plan::ProgramOp program,
                                plan::BufferOp buffer) {
  if (buffers.count(buffer.getSymName()))
    return success(); // placed for the sake of an alias
  int64_t base = static_cast<int64_t>(buffer.getOffset());
  int64_t span =
      (buffer.getSlots() - 1) * buffer.getSlotStride() + buffer.getBytes();
  std::vector<char> &arena = arenas[buffer.getSpace()];
  if (base >= 0) {
    if (base + span > static_cast<int64_t>(arena.size()))
      return buffer.emitOpError()
             << "expected to end within the " << arena.size()
             << " bytes of arena " << plan::stringifySpace(buffer.getSpace())
             << ", found its end at byte " << base + span;
  } else if (auto other = buffer.getAliasOf()) {
    auto target = program.lookupSymbol<plan::BufferOp>(*other);
    if (!target || failed(place(program, target)))
      return buffer.emitOpError() << "is an alias of no buffer";
    base = buffers.find(*other)->second.base;
  } else {
    base = llvm::alignTo(arena.size(), 64);
    arena.resize(base + span, kPoison);
  }
  buffers[buffer.getSymName()] = {buffer.getSpace(), base,
                                  static_cast<int64_t>(buffer.getBytes()),
                                  static_cast<int64_t>(buffer.getSlots()),
                                  static_cast<int64_t>(buffer.getSlotStride())};
  return success();
}

FailureOr<RankMemory> RankMemory::create(plan::ProgramOp program,
                                         MeshPoint point) {
  RankMemory memory;
  memory.point = point;
  for (auto arena : program.getOps<plan::ArenaOp>())
    if (!memory.arenas
             .emplace(arena.getSpace(),
                      std::vector<char>(arena.getBytes(), kPoison))
             .second)
      return arena.emitOpError() << "expected one arena per space, found two";
  for (auto buffer : program.getOps<plan::BufferOp>())
    if (failed(memory.place(program, buffer)))
      return failure();
  for (auto buffer : program.getOps<plan::BufferOp>()) {
    ElementsAttr value = buffer.getValueAttr();
    if (!value)
      continue;
    FailureOr<Tensor> tensor = Tensor::fromElements(value);
    if (failed(tensor))
      return buffer.emitOpError() << "expected a value that can be read";
    int64_t bytes = tensor->getNumElements() * tensor->getElementBytes();
    if (bytes > static_cast<int64_t>(buffer.getBytes()))
      return buffer.emitOpError()
             << "expected a value of at most " << buffer.getBytes()
             << " bytes, found one of " << bytes;
    const Buffer &target = memory.buffers[buffer.getSymName()];
    tensor->toBytes({memory.arenas[target.space].data() + target.base,
                     static_cast<size_t>(bytes)});
  }
  return memory;
}

MeshPoint RankMemory::pointOf(const plan::RunTurn &run) const {
  MeshPoint result = point;
  result.microBatch = run.getMicroBatch();
  return result;
}

FailureOr<char *> RankMemory::resolve(Operation *at, plan::ViewAttr view,
                                      const plan::RunTurn &run) {
  auto it = buffers.find(view.getBuffer().getValue());
  if (it == buffers.end())
    return at->emitOpError() << "names no buffer " << view.getBuffer();
  const Buffer &buffer = it->second;
  int64_t offset = view.getOffset();
  MeshPoint here = pointOf(run);
  for (plan::AxisStrideAttr axis : view.getAxes()) {
    if (!here.getAxisSize(axis.getAxis()))
      return at->emitOpError() << "names no axis '" << axis.getAxis() << "'";
    offset += here.getCoordinate(axis.getAxis()) * axis.getBytes();
  }
  if (offset < 0 || offset + view.getSpanBytes() > buffer.bytes)
    return at->emitOpError()
           << "expected a view within the " << buffer.bytes << " bytes of "
           << view.getBuffer() << " on rank " << point.rank << ", found bytes "
           << offset << " to " << offset + view.getSpanBytes();
  int64_t slot = run.getMicroBatch() % buffer.slots;
  return arenas[buffer.space].data() + buffer.base + slot * buffer.slotStride +
         offset;
}

/// Calls `visit(byte of the first element's start)` for every element in order.
static void forEachElement(plan::ViewAttr view,
                           llvm::function_ref<void(int64_t)> visit) {
  SmallVector<int64_t> strides;
  for (int64_t stride : view.getStrides())
    strides.push_back(stride * view.getElementBytes());
  forEachPosition(view.getShape(), strides, 0, visit);
}

FailureOr<Tensor> RankMemory::read(Operation *at, plan::ViewAttr view,
                                   const plan::RunTurn &run) {
  FailureOr<char *> base = resolve(at, view, run);
  if (failed(base))
    return failure();
  size_t size = view.getElementBytes(), count = view.getNumElements();
  if (view.isContiguous())
    return Tensor::fromBytes(view.getTensorType(), {*base, size * count});
  std::vector<char> bytes(size * count);
  char *next = bytes.data();
  forEachElement(view, [&](int64_t position) {
    std::memcpy(next, *base + position, size);
    next += size;
  });
  return Tensor::fromBytes(view.getTensorType(), bytes);
}

LogicalResult RankMemory::write(Operation *at, plan::ViewAttr view,
                                const plan::RunTurn &run,
                                const Tensor &tensor) {
  FailureOr<char *> base = resolve(at, view, run);
  if (failed(base))
    return failure();
  if (tensor.getNumElements() != view.getNumElements() ||
      tensor.getElementType() != view.getElement())
    return at->emitOpError() << "expected to write " << tensor.getType()
                             << ", found view " << view;
  size_t size = view.getElementBytes(), count = view.getNumElements();
  std::vector<char> bytes(size * count);
  tensor.toBytes(bytes);
  const char *next = bytes.data();
  forEachElement(view, [&](int64_t position) {
    std::memcpy(*base + position, next, size);
    next += size;
  });
  return success();
}

LogicalResult RankMemory::poison(Operation *at, plan::ViewAttr view,
                                 const plan::RunTurn &run) {
  FailureOr<char *> base = resolve(at, view, run);
  if (failed(base))
    return failure();
  size_t size = view.getElementBytes();
  forEachElement(view, [&](int64_t position) {
    std::memset(*base + position, kPoison, size);
  });
  return success();
}

bool RankMemory::overlap(plan::ViewAttr one, plan::ViewAttr other,
                         const plan::RunTurn &run) {
  char *first = *resolve(run.run, one, run),
       *second = *resolve(run.run, other, run);
  return first < second + other.getSpanBytes() &&
         second < first + one.getSpanBytes();
}
