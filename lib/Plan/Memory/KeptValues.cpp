// Bodies are named for their tasks; what touches a buffer in which of them says
// what it is for.

#include "KeptValues.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace accel;
using namespace accel::plan;

namespace {
/// What a body is, of a pass over a micro-batch.
enum class Direction { Forward, Backward, Other };

/// A command that touches a buffer.
struct Touch {
  mutable BodyOp body; // op handles are pointers
  Operation *op;       ///< of the body itself
  Operation *command;
  ViewAttr view;
  Access how;

  bool writes() const { return how != Access::Read; }
  /// Writes all of it, and reads none.
  bool begins(BufferOp buffer) const {
    ViewAttr all = view;
    return how == Access::Write && all.isContiguous() &&
           all.getSpanBytes() == int64_t(buffer.getBytes());
  }
};
} // namespace

/// By its name: the kind of the task, then the number of its chunk.
static Direction getDirection(BodyOp body) {
  StringRef name = body.getSymName();
  StringRef kind = name.rtrim("0123456789_");
  if (kind == "forward")
    return Direction::Forward;
  if (kind == "backward" || kind == "backward_input" ||
      kind == "backward_weight")
    return Direction::Backward;
  return Direction::Other;
}

/// The buffers that hold something made of a batch: of inputs, or of what a
/// message has brought.
static llvm::DenseSet<Operation *> findOfBatch(ProgramOp program,
                                               const BufferTable &buffers) {
  llvm::DenseSet<Operation *> ofBatch;
  for (auto buffer : program.getOps<BufferOp>())
    if (buffer.getRole() == Role::input)
      ofBatch.insert(buffer);
  for (bool grows = true; grows;) {
    grows = false;
    program.walk([&](CommandOpInterface command) {
      bool isOf = isa<RecvOp>(command.getOperation()) ||
                  llvm::any_of(command.getReads(), [&](ViewAttr view) {
                    return ofBatch.contains(buffers.lookup(view));
                  });
      if (!isOf)
        return;
      for (ViewAttr view : command.getWrites()) {
        BufferOp buffer = buffers.lookup(view);
        if (buffer.getRole() != Role::state &&
            buffer.getRole() != Role::scratch)
          grows |= ofBatch.insert(buffer).second;
      }
    });
  }
  return ofBatch;
}

/// Whether writes, which no coordinate moves, leave no byte of it out.
static bool isWrittenWhole(BufferOp buffer, ArrayRef<Touch> accesses) {
  SmallVector<std::pair<int64_t, int64_t>> spans;
  for (const Touch &access : accesses) {
    if (!access.writes())
      continue;
    if (!access.view.getAxes().empty())
      return false;
    ViewAttr view = access.view;
    spans.push_back({view.getOffset(), view.getOffset() + view.getSpanBytes()});
  }
  llvm::sort(spans);
  int64_t end = 0;
  for (auto [first, last] : spans) {
    if (first > end)
      return false;
    end = std::max(end, last);
  }
  return end == int64_t(buffer.getBytes());
}

static bool isOfMicroBatch(ViewAttr view) {
  return llvm::any_of(view.getAxes(), [](AxisStrideAttr axis) {
    return axis.getAxis() == dist::MeshOp::kMicroBatchAxis;
  });
}

/// The op of the forward behind which a value is whole. What a collective
/// brings is waited for in front of who reads it, not earlier.
static Operation *findMaker(ArrayRef<Touch> forward) {
  auto last = llvm::find_if(llvm::reverse(forward),
                            [](const Touch &each) { return each.writes(); });
  if (last == forward.rend())
    return forward.front().op; // a message has brought it
  if (isa<CollectiveOp>(last->command))
    for (const Touch &each : llvm::make_range(last.base(), forward.end()))
      if (each.op != last->op)
        return each.op;
  return last->op;
}

std::vector<KeptValue> accel::plan::findKeptValues(ProgramOp program,
                                                   const BufferTable &buffers) {
  llvm::MapVector<Operation *, SmallVector<Touch>> accesses;
  llvm::DenseMap<Operation *, size_t> places;
  for (auto body : program.getOps<BodyOp>())
    for (Operation &op : body.getBody().front()) {
      places.try_emplace(&op, places.size());
      op.walk([&](CommandOpInterface command) {
        command.forEachView([&](ViewAttr view, Access how) {
          if (how != Access::None)
            accesses[buffers.lookup(view)].push_back(
                {body, &op, command, view, how});
        });
      });
    }
  llvm::DenseSet<Operation *> ofBatch = findOfBatch(program, buffers);
  std::vector<KeptValue> kept;
  for (auto &[op, all] : accesses) {
    auto buffer = cast<BufferOp>(op);
    bool isOurs = buffer.getRole() == Role::activation ||
                  buffer.getRole() == Role::communication;
    if (!isOurs || !ofBatch.contains(op) ||
        (buffer.getSpace() != Space::device &&
         buffer.getSpace() != Space::shared) ||
        !isWrittenWhole(buffer, all))
      continue;
    KeptValue value{buffer, {}, nullptr, all.front().view, {}, {}, {}};
    SmallVector<Touch> forward;
    bool fits = true;
    for (const Touch &each : all) {
      fits &= !isOfMicroBatch(each.view);
      if (BodyUse use{each.body.getSymNameAttr(), each.begins(buffer)};
          value.uses.empty() || value.uses.back().body != use.body) {
        value.uses.push_back(use);
        if (getDirection(each.body) != Direction::Backward)
          value.otherUses.push_back(use);
      }
      switch (getDirection(each.body)) {
      case Direction::Forward:
        fits &= !value.forward || value.forward == each.body;
        value.forward = each.body;
        forward.push_back(each);
        break;
      case Direction::Backward:
        fits &= !each.writes();
        if (value.readers.empty() ||
            value.readers.back()->getParentOp() != each.body)
          value.readers.push_back(each.op);
        break;
      case Direction::Other:
        fits &= isa<SendOp, RecvOp>(each.command);
        break;
      }
    }
    if (!fits || forward.empty() || value.readers.empty())
      continue;
    value.maker = findMaker(forward);
    kept.push_back(std::move(value));
  }
  llvm::stable_sort(kept, [&](const KeptValue &one, const KeptValue &other) {
    return places.lookup(one.maker) < places.lookup(other.maker);
  });
  return kept;
}
