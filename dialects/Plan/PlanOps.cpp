// Verifiers of the plan ops: what can be said of one op and the symbols it
// names. Races, deadlocks and overlaps are the business of lib/Plan.

#include "dialects/Plan/Plan.h"

#include "dialects/NN/Causal.h"

using namespace mlir;
using namespace accel;
using namespace accel::plan;

SmallVector<ViewAttr> plan::detail::selectViews(CommandOpInterface command,
                                                Access how) {
  SmallVector<ViewAttr> views;
  command.forEachView([&](ViewAttr view, Access access) {
    if (access == how || access == Access::Both)
      views.push_back(view);
  });
  return views;
}

LogicalResult ProgramOp::verifyRegions() {
  // Runs name bodies, and every view must lie within its buffer, whatever the
  // coordinates are.
  mlir::SymbolTable symbols(*this);
  // Called from outside by their names, which are nobody's symbols.
  llvm::SmallDenseSet<StringRef> entries;
  for (auto entry : getOps<EntryOp>())
    if (!entries.insert(entry.getKind()).second)
      return entry.emitOpError()
             << "expected one entry '" << entry.getKind() << "', found two";
  WalkResult named = walk([&](RunOp run) {
    if (!symbols.lookup<BodyOp>(run.getTaskAttr().getAttr()))
      return run.emitOpError() << "names no body " << run.getTaskAttr(),
             WalkResult::interrupt();
    return WalkResult::advance();
  });
  if (named.wasInterrupted())
    return failure();
  for (auto body : getOps<BodyOp>()) {
    WalkResult result = body.walk([&](CommandOpInterface command) {
      SmallVector<ViewAttr> views = command.getReads();
      llvm::append_range(views, command.getWrites());
      if (auto releases = command->getAttrOfType<ArrayAttr>(kReleasesAttr))
        llvm::append_range(views, releases.getAsRange<ViewAttr>());
      for (ViewAttr view : views) {
        auto buffer = symbols.lookup<BufferOp>(view.getBuffer().getAttr());
        if (!buffer)
          return command.emitOpError()
                     << "names no buffer " << view.getBuffer(),
                 WalkResult::interrupt();
        int64_t end = view.getOffset() + view.getSpanBytes();
        if (end > static_cast<int64_t>(buffer.getBytes()))
          return command.emitOpError()
                     << "expected a view within the " << buffer.getBytes()
                     << " bytes of " << view.getBuffer()
                     << ", found one that ends at byte " << end,
                 WalkResult::interrupt();
      }
      return WalkResult::advance();
    });
    if (result.wasInterrupted())
      return failure();
  }
  return success();
}

LogicalResult BufferOp::verify() {
  if (static_cast<int64_t>(getOffset()) < -1)
    return emitOpError() << "expected an offset of at least -1, found "
                         << static_cast<int64_t>(getOffset());
  if (static_cast<int64_t>(getSlots()) < 1 || getSlotStride() < getBytes())
    return emitOpError() << "expected at least one slot, not closer than "
                         << getBytes() << " bytes, found " << getSlots()
                         << " slots " << getSlotStride() << " bytes apart";
  if (getSlots() > 1 &&
      llvm::is_contained({Role::state, Role::packed, Role::constant},
                         getRole()))
    return emitOpError() << "expected one copy of what all micro-batches "
                            "share, found "
                         << getSlots();
  return success();
}

LogicalResult EntryOp::verifyRegions() {
  for (Operation &op : getBody().front())
    if (!isa<SegmentOp, LoopOp>(op))
      return op.emitOpError() << "expected segments and loops in an entry";
  return success();
}

LogicalResult LoopOp::verifyRegions() {
  if (static_cast<int64_t>(getTrips()) < 2)
    return emitOpError() << "expected at least two turns, found "
                         << static_cast<int64_t>(getTrips())
                         << ": what runs once stands outside loops";
  if (getBody().front().empty())
    return emitOpError() << "expected segments, found none";
  for (Operation &op : getBody().front())
    if (!isa<SegmentOp>(op))
      return op.emitOpError() << "expected segments alone in a loop";
  return success();
}

int64_t RunOp::getTrips() {
  auto loop = (*this)->getParentOfType<LoopOp>();
  return loop ? loop.getTrips() : 1;
}

LogicalResult GroupOp::verifyRegions() {
  std::optional<StringRef> stream;
  bool sends = false;
  for (Operation &op : getBody().front()) {
    auto recv = dyn_cast<RecvOp>(op);
    if (!recv && !isa<SendOp>(op))
      return op.emitOpError() << "expected sends and receives in a group";
    if (recv && sends)
      return op.emitOpError() << "expected the receives of a group first";
    sends |= !recv;
    StringRef own = cast<CommandOpInterface>(op).getStreamName();
    if (stream && *stream != own)
      return op.emitOpError() << "expected a group on one stream, found '"
                              << *stream << "' and '" << own << "'";
    stream = own;
  }
  if (!stream)
    return emitOpError() << "expected sends and receives, found none";
  return success();
}

LogicalResult RunOp::verify() {
  bool inLoop = bool((*this)->getParentOfType<LoopOp>());
  if (inLoop != getTurn())
    return emitOpError() << (inLoop ? "expected 'turn + offset' in a loop"
                                    : "expected a micro-batch outside loops, "
                                      "found 'turn + offset'");
  return success();
}

LogicalResult GemmOp::verify() {
  ArrayRef<int64_t> a = getA().getShape(), b = getB().getShape(),
                    c = getC().getShape();
  bool fits = a.size() >= 2 && c.size() == a.size() &&
              (b.size() == 2 || b.size() == a.size());
  if (fits) {
    fits = a.drop_back() == c.drop_back() && b[b.size() - 2] == a.back() &&
           b.back() == c.back() &&
           (b.size() == 2 || b.drop_back(2) == a.drop_back(2));
  }
  if (!fits)
    return emitOpError() << "expected [b…, M, K] · [b…, K, N] -> [b…, M, N], "
                            "found ["
                         << a << "] · [" << b << "] -> [" << c << "]";
  if (getBias() && getBias()->getShape() != c.take_back())
    return emitOpError() << "expected a bias of shape [" << c.back()
                         << "], found [" << getBias()->getShape() << "]";
  return success();
}

/// A group, of i64 or i32, for each row.
static LogicalResult verifyGroups(Operation *op, ViewAttr groups,
                                  int64_t rows) {
  if (groups.getShape() == ArrayRef<int64_t>(rows) &&
      (groups.getElement().isInteger(64) || groups.getElement().isInteger(32)))
    return success();
  return op->emitOpError() << "expected a group, of i64 or i32, for each of "
                           << rows << " rows, found " << groups;
}

LogicalResult GroupedGemmOp::verify() {
  ArrayRef<int64_t> a = getA().getShape(), b = getB().getShape(),
                    c = getC().getShape();
  if (a.size() != 2 || b.size() != 3 || c.size() != 2 || a[0] != c[0] ||
      a[1] != b[1] || b[2] != c[1])
    return emitOpError() << "expected [R, K] · [G, K, N] -> [R, N], found ["
                         << a << "] · [" << b << "] -> [" << c << "]";
  return verifyGroups(*this, getGroups(), a[0]);
}

LogicalResult GroupedGemmGradOp::verify() {
  ArrayRef<int64_t> a = getA().getShape(), b = getB().getShape(),
                    c = getC().getShape();
  if (a.size() != 2 || b.size() != 2 || c.size() != 3 || a[0] != b[0] ||
      a[1] != c[1] || b[1] != c[2])
    return emitOpError() << "expected [R, K]ᵀ · [R, N] -> [G, K, N], found ["
                         << a << "] · [" << b << "] -> [" << c << "]";
  return verifyGroups(*this, getGroups(), a[0]);
}

/// Whether what the last `space` dimensions number lies evenly apart, one
/// behind the other.
static bool isEven(ViewAttr view, size_t space) {
  int64_t next = 0;
  for (size_t back = 1; back <= space; ++back) {
    size_t dim = view.getShape().size() - back;
    int64_t size = view.getShape()[dim], stride = view.getStrides()[dim];
    if (size == 1)
      continue;
    if (stride <= 0 || (next != 0 && stride != next))
      return false;
    next = stride * size;
  }
  return true;
}

LogicalResult ConvOp::verify() {
  ViewAttr input = getA(), weight = getB(), output = getC();
  if (getConvolution() == Convolution::input_grad)
    std::swap(input, output);
  if (getConvolution() == Convolution::weight_grad)
    std::swap(weight, output);
  ArrayRef<int64_t> x = input.getShape(), w = weight.getShape(),
                    y = output.getShape();
  size_t space = getStrides().size();
  if (space < 1 || space > 3 || getDilations().size() != space ||
      getLow().size() != space)
    return emitOpError() << "expected strides, dilations and low paddings of "
                            "one to three dimensions of space";
  size_t rank = space + 3;
  if (x.size() != rank || w.size() != rank || y.size() != rank ||
      x[0] != y[0] || x[1] != y[1] || x[1] != w[0] || x[2] != w[2] ||
      y[2] != w[1])
    return emitOpError() << "expected an input [N, G, C, S…], a weight [G, O, "
                            "C, K…] and an output [N, G, O, P…], found ["
                         << x << "], [" << w << "] and [" << y << "]";
  auto isBelow = [](int64_t least) {
    return [least](int64_t value) { return value < least; };
  };
  if (llvm::any_of(getStrides(), isBelow(1)) ||
      llvm::any_of(getDilations(), isBelow(1)) ||
      llvm::any_of(getLow(), isBelow(0)))
    return emitOpError() << "expected strides and dilations of at least 1 and "
                            "low paddings of at least 0";
  if (!isEven(input, space) || !isEven(output, space) || !isEven(weight, space))
    return emitOpError() << "expected positions, and places of the weight, "
                            "evenly apart, found "
                         << input << ", " << weight << " and " << output;
  return success();
}

LogicalResult DealRowsOp::verify() {
  ArrayRef<int64_t> groups = getGroups().getShape(),
                    rows = getRows().getShape(),
                    places = getPlaces().getShape();
  int64_t ranks = getRanks(), count = getNumGroups();
  if (ranks < 1 || count < 1 || count % ranks != 0)
    return emitOpError() << "expected groups that " << ranks
                         << " ranks divide, found " << count;
  if (groups.size() != 1 || rows.size() != 1 || places.size() != 1 ||
      getOwn().getShape() != rows || groups[0] != places[0] * ranks ||
      getRank().getNumElements() != 1)
    return emitOpError() << "expected [R] and a rank -> [room], [room] and "
                            "the rank's part of [R], found ["
                         << groups << "] -> [" << rows << "], ["
                         << getOwn().getShape() << "] and [" << places << "]";
  for (ViewAttr view :
       {getGroups(), getRank(), getRows(), getOwn(), getPlaces()})
    if (!view.getElement().isInteger(64))
      return emitOpError() << "expected views of i64, found " << view;
  return success();
}

LogicalResult AttentionOp::verify() { return accel::verifyOffsets(*this); }
LogicalResult AttentionGradOp::verify() { return accel::verifyOffsets(*this); }

LogicalResult CollectiveOp::verify() {
  if (getInputs().size() != getOutputs().size())
    return emitOpError() << "expected as many outputs as inputs ("
                         << getInputs().size() << "), found "
                         << getOutputs().size();
  bool reduces = getCollective() == Collective::all_reduce ||
                 getCollective() == Collective::reduce_scatter;
  if (reduces != getCombine().has_value())
    return emitOpError() << (reduces ? "expected 'combine'"
                                     : "expected no 'combine'")
                         << " on " << stringifyCollective(getCollective());
  bool fetches = getCollective() == Collective::fetch_rows;
  if (fetches != getIndex().has_value() ||
      (fetches &&
       (getInputs().size() != 1 || !getIndex()->getElement().isInteger(64))))
    return emitOpError() << (fetches ? "expected one input, and an index of i64"
                                     : "expected no index")
                         << " on " << stringifyCollective(getCollective());
  return success();
}

/// What has the parts of all micro-batches has a dimension for them.
static LogicalResult verifyEach(Operation *op, Source source, bool isOfEach,
                                PartAttr part, ViewAttr view) {
  if (!isOfEach)
    return success();
  if (source == Source::state)
    return op->emitOpError() << "expected an input or an output of each "
                                "micro-batch, found a state";
  if (view.getShape().size() == part.getShape().size() + 1)
    return success();
  return op->emitOpError() << "expected a view of one dimension more than the "
                              "part has, which counts micro-batches, found "
                           << view.getShape().size() << " and "
                           << part.getShape().size();
}

LogicalResult ReadOp::verify() {
  return verifyEach(*this, getSource(), getEachMicroBatch(), getPart(),
                    getTarget());
}

LogicalResult WriteOp::verify() {
  return verifyEach(*this, getDestination(), getEachMicroBatch(), getPart(),
                    getView());
}

LogicalResult FillOp::verify() {
  auto value = llvm::dyn_cast<TypedAttr>(getValueAttr());
  if (!llvm::isa<IntegerAttr, FloatAttr>(getValueAttr()) ||
      value.getType() != getTarget().getElement())
    return emitOpError() << "expected a value of type "
                         << getTarget().getElement() << ", found "
                         << getValueAttr();
  return success();
}
