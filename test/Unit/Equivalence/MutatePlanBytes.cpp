// Changes of a plan's bytes: which ones views and buffers are.

#include "PlanMutator.h"

#include "mlir/IR/AttrTypeSubElements.h"

using namespace mlir;
using namespace accel;
using namespace accel::test;

/// Null where that is no view.
static plan::ViewAttr rebuild(plan::ViewAttr view, int64_t offset,
                              ArrayRef<plan::AxisStrideAttr> axes,
                              ArrayRef<int64_t> strides) {
  return plan::ViewAttr::getChecked(
      [&] { return emitError(UnknownLoc::get(view.getContext())); },
      view.getContext(), view.getBuffer(), offset, axes, view.getElement(),
      view.getShape(), strides);
}

/// By an element or by a row, as far as the buffer goes.
bool PlanMutator::moveView() {
  llvm::StringMap<int64_t> sizes;
  for (plan::BufferOp buffer : all<plan::BufferOp>())
    sizes[buffer.getSymName()] = buffer.getBytes();
  SmallVector<std::pair<Use, int64_t>> found;
  for (Use use : getUses()) {
    int64_t bytes = use.view.getElementBytes(), offset = use.view.getOffset();
    int64_t row = use.view.getShape().empty() ? 1 : use.view.getShape().back();
    for (int64_t by : {bytes, -bytes, row * bytes, -row * bytes})
      if (offset + by >= 0 && offset + by + use.view.getSpanBytes() <=
                                  sizes[use.view.getBuffer().getValue()])
        found.push_back({use, offset + by});
  }
  if (found.empty())
    return false;
  auto [use, offset] = pick(ArrayRef(found));
  return setView(use, rebuild(use.view, offset, use.view.getAxes(),
                              use.view.getStrides()));
}

/// Exchanges the strides of two dimensions of one size.
bool PlanMutator::turnView() {
  SmallVector<std::tuple<Use, size_t, size_t>> found;
  for (const Use &use : getUses())
    for (size_t one = 0; one < use.view.getShape().size(); ++one)
      for (size_t other = 0; other < one; ++other)
        if (use.view.getShape()[one] == use.view.getShape()[other])
          found.push_back({use, one, other});
  if (found.empty())
    return false;
  auto [use, one, other] = pick(ArrayRef(found));
  SmallVector<int64_t> strides(use.view.getStrides());
  std::swap(strides[one], strides[other]);
  setView(use,
          rebuild(use.view, use.view.getOffset(), use.view.getAxes(), strides));
  return true;
}

bool PlanMutator::changeRankStride() {
  SmallVector<Use> uses;
  for (const Use &use : getUses())
    if (!use.view.getAxes().empty())
      uses.push_back(use);
  if (uses.empty())
    return false;
  Use use = pick(ArrayRef(uses));
  SmallVector<plan::AxisStrideAttr> axes(use.view.getAxes());
  plan::AxisStrideAttr &axis = axes[random() % axes.size()];
  if (flip())
    axis = plan::AxisStrideAttr::get(module.getContext(),
                                     pick(ArrayRef(getAxes())).getValue(),
                                     axis.getBytes());
  else
    axis = plan::AxisStrideAttr::get(module.getContext(), axis.getAxis(),
                                     axis.getBytes() / 2);
  setView(use,
          rebuild(use.view, use.view.getOffset(), axes, use.view.getStrides()));
  return true;
}

/// A view of another buffer that looks the same.
bool PlanMutator::exchangeView() {
  SmallVector<Use> uses = getUses(), others;
  Use use = pick(ArrayRef(uses));
  for (const Use &other : uses)
    if (other.view != use.view &&
        other.view.getShape() == use.view.getShape() &&
        other.view.getElement() == use.view.getElement())
      others.push_back(other);
  if (others.empty())
    return false;
  return setView(use, pick(ArrayRef(others)).view);
}

bool PlanMutator::swapOperands() {
  SmallVector<std::pair<Use, Use>> pairs;
  for (Operation *op : getCommands()) {
    SmallVector<Use> uses = getUses(op);
    for (const Use &one : uses)
      for (const Use &other : uses)
        if (one.view != other.view &&
            one.view.getShape() == other.view.getShape() &&
            one.view.getElement() == other.view.getElement())
          pairs.push_back({one, other});
  }
  if (pairs.empty())
    return false;
  auto [one, other] = pick(ArrayRef(pairs));
  setView(one, other.view);
  other.view = one.view;
  setView(other, one.view);
  return true;
}

bool PlanMutator::mergeBuffers() {
  auto buffers = all<plan::BufferOp>();
  plan::BufferOp buffer = pick(ArrayRef(buffers)),
                 other = pick(ArrayRef(buffers));
  if (buffer.getSpace() != other.getSpace() ||
      buffer.getOffset() == other.getOffset())
    return false;
  buffer.setOffset(other.getOffset());
  return true;
}

bool PlanMutator::moveBuffer() {
  plan::BufferOp buffer = pick(ArrayRef(all<plan::BufferOp>()));
  int64_t offset = buffer.getOffset();
  int64_t moved = offset + (flip() ? 64 : -64) * int64_t(1 + random() % 4);
  if (moved < 0)
    return false;
  buffer.setOffset(moved);
  return true;
}

/// A buffer where the last copy of another lies, which only some micro-batches
/// have.
bool PlanMutator::overlapCopy() {
  SmallVector<plan::BufferOp> copied;
  for (plan::BufferOp buffer : all<plan::BufferOp>())
    if (buffer.getSlots() > 1)
      copied.push_back(buffer);
  if (copied.empty())
    return false;
  plan::BufferOp buffer = pick(ArrayRef(all<plan::BufferOp>())),
                 other = pick(ArrayRef(copied));
  if (buffer == other || buffer.getSpace() != other.getSpace())
    return false;
  buffer.setOffset(other.getOffset() +
                   (other.getSlots() - 1) * other.getSlotStride());
  return true;
}

/// What a command writes takes the place of what it reads, for whoever reads
/// either.
bool PlanMutator::writeInPlace() {
  SmallVector<std::pair<plan::BufferOp, plan::BufferOp>> pairs;
  for (Operation *op : getCommands()) {
    auto command = cast<plan::CommandOpInterface>(op);
    for (plan::ViewAttr read : command.getReads())
      for (plan::ViewAttr written : command.getWrites()) {
        auto program = op->getParentOfType<plan::ProgramOp>();
        auto from = program.lookupSymbol<plan::BufferOp>(read.getBuffer()),
             to = program.lookupSymbol<plan::BufferOp>(written.getBuffer());
        bool isActivation = from.getRole() == plan::Role::activation &&
                            to.getRole() == plan::Role::activation;
        // Those with copies more often than there are.
        unsigned times = from.getSlots() > 1 || to.getSlots() > 1 ? 4 : 1;
        if (isActivation && from != to && from.getBytes() == to.getBytes() &&
            from.getSpace() == to.getSpace())
          pairs.append(times, {from, to});
      }
  }
  if (pairs.empty())
    return false;
  auto [from, to] = pick(ArrayRef(pairs));
  if (flip())
    from.setSlots(std::max(from.getSlots(), to.getSlots()));
  AttrTypeReplacer replacer;
  auto kept = FlatSymbolRefAttr::get(from.getSymNameAttr());
  replacer.addReplacement(
      [&, old = FlatSymbolRefAttr::get(to.getSymNameAttr())](
          plan::ViewAttr view) -> std::optional<Attribute> {
        if (view.getBuffer() != old)
          return std::nullopt;
        return plan::ViewAttr::get(view.getContext(), kept, view.getOffset(),
                                   view.getAxes(), view.getElement(),
                                   view.getShape(), view.getStrides());
      });
  for (Operation *op : getCommands())
    replacer.replaceElementsIn(op);
  return true;
}

bool PlanMutator::releaseEarly() {
  SmallVector<Operation *> commands = getCommands();
  Operation *op = pick(ArrayRef(commands));
  plan::BufferOp buffer = pick(ArrayRef(all<plan::BufferOp>()));
  int64_t bytes = buffer.getBytes();
  SmallVector<Attribute> releases;
  if (auto list = op->getAttrOfType<ArrayAttr>(plan::kReleasesAttr))
    llvm::append_range(releases, list);
  releases.push_back(plan::ViewAttr::get(
      module.getContext(), FlatSymbolRefAttr::get(buffer.getSymNameAttr()), 0,
      {}, IntegerType::get(module.getContext(), 8), {bytes}, {1}));
  op->setAttr(plan::kReleasesAttr,
              ArrayAttr::get(module.getContext(), releases));
  return true;
}
