// Copies what the forward keeps for the backward to the host's memory or to a
// file, and back ahead of who reads it there, on a stream of their own.

#include "CopyPlaces.h"
#include "CopyStream.h"
#include "KeptValues.h"

#include "dialects/Interfaces/KernelSource.h"
#include "dialects/Plan/Offloaded.h"
#include "lib/Cost/Decision.h"
#include "lib/Cost/OffloadDecisions.h"
#include "lib/Plan/ComputeStream.h"
#include "lib/Plan/Passes.h"
#include "mlir/IR/AttrTypeSubElements.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;

namespace accel::plan {
#define GEN_PASS_DEF_OFFLOADACTIVATIONSPASS
#include "lib/Plan/Passes.h.inc"

static constexpr StringLiteral kStream = "activations";
static constexpr StringLiteral kPass = "plan-offload-activations";
/// Values that are smaller than this part of the largest stay: each copy is a
/// command of its own.
static constexpr int64_t kSmallPart = 100;
/// What waits for less of its time is said to wait for nothing.
static constexpr double kMostWaiting = 0.01;

/// All of a buffer, in elements of those that a view is of.
static ViewAttr getWhole(BufferOp buffer, ViewAttr like) {
  SmallVector<int64_t> shape{int64_t(buffer.getBytes()) /
                             like.getElementBytes()};
  return ViewAttr::get(
      buffer.getContext(), FlatSymbolRefAttr::get(buffer.getSymNameAttr()), 0,
      {}, like.getElement(), shape, StridedView::contiguous(shape).strides);
}

namespace {
/// What a body fetches for one of its ops.
struct Fetch {
  ViewAttr from, to;
};

/// One program.
class ActivationOffload {
public:
  ActivationOffload(ProgramOp program, Space space)
      : program(program), space(space), buffers(program) {
    for (auto entry : program.getOps<EntryOp>())
      calls.emplace_back(entry);
  }

  void run() {
    kept = findKeptValues(program, buffers);
    count = kept.size();
    int64_t largest = 0;
    for (const KeptValue &value : kept)
      largest = std::max<int64_t>(largest, value.buffer.getBytes());
    llvm::erase_if(kept, [&](const KeptValue &value) {
      return int64_t(value.buffer.getBytes()) * kSmallPart < largest ||
             keepsAsMany(value);
    });
    findPlaces();
    llvm::erase_if(kept, [&](const KeptValue &value) { return stays(value); });
    if (kept.empty())
      return;
    takeAway();
    for (auto &[body, names] : fetched)
      bringBack(cast<BodyOp>(body), names);
    tell();
  }

private:
  using Names = llvm::DenseMap<Attribute, FlatSymbolRefAttr>;

  bool keepsAsMany(const KeptValue &value) const;
  void findPlaces();
  bool stays(const KeptValue &value) const;
  void takeAway();
  void bringBack(BodyOp body, const Names &names);
  void tell();
  BufferOp createBuffer(const KeptValue &value, StringRef suffix, Space space);
  CopyPlaces &getPlaces(Operation *body, CopyPlaces::Copies copies) {
    auto known = places.find(body);
    if (known == places.end())
      known = places
                  .insert({body, CopyPlaces(copies, cast<BodyOp>(body), buffers,
                                            symbols)})
                  .first;
    return known->second;
  }
  const CopyPlaces &getPlaces(Operation *op) const {
    return places.find(op->getParentOp())->second;
  }

  ProgramOp program;
  Space space; ///< where values lie
  BufferTable buffers;
  SymbolTableCollection symbols;
  std::vector<InFlight> calls; ///< of the entries
  std::vector<KeptValue> kept;
  size_t count = 0;                                ///< of all that is kept
  llvm::MapVector<Operation *, CopyPlaces> places; ///< by body
  /// By the op of the backward that needs it.
  llvm::DenseMap<Operation *, SmallVector<Fetch, 1>> fetches;
  /// By body: what it has in the place of what the forward has made.
  llvm::MapVector<Operation *, Names> fetched;
  /// By body, the ops with copies.
  llvm::MapVector<Operation *, llvm::SetVector<Operation *>> copied;
};

struct OffloadActivationsPass
    : impl::OffloadActivationsPassBase<OffloadActivationsPass> {
  using Base::Base;

  void runOnOperation() override {
    StringRef where =
        resolveOffload(getOperation(), kOffloadActivations, space);
    if (where == "none")
      return;
    std::optional<Space> parsed = symbolizeSpace(where);
    if (parsed != Space::host && parsed != Space::nvme) {
      getOperation().emitError()
          << "expected activations to lie in none, host, nvme or auto, found '"
          << where << "'";
      return signalPassFailure();
    }
    for (auto program : getOperation().getOps<ProgramOp>())
      ActivationOffload(program, *parsed).run();
  }
};
} // namespace

/// Whether messages that have begun and not ended keep as many copies of a
/// value as the backward does.
bool ActivationOffload::keepsAsMany(const KeptValue &value) const {
  return value.otherUses.size() > 1 &&
         llvm::all_of(calls, [&](const InFlight &call) {
           return call.countCopies(value.otherUses) >=
                  call.countCopies(value.uses);
         });
}

void ActivationOffload::findPlaces() {
  struct Reader {
    Operation *op;
    int64_t bytes;
  };
  llvm::MapVector<Operation *, SmallVector<Reader>> readers;
  for (const KeptValue &value : kept) {
    int64_t bytes = value.buffer.getBytes();
    getPlaces(value.forward, CopyPlaces::Copies::Behind)
        .add(value.maker, bytes);
    for (Operation *reader : value.readers)
      readers[reader->getParentOp()].push_back({reader, bytes});
  }
  for (auto &[body, all] : readers) {
    llvm::stable_sort(all, [](const Reader &one, const Reader &other) {
      return one.op != other.op && one.op->isBeforeInBlock(other.op);
    });
    CopyPlaces &ahead = getPlaces(body, CopyPlaces::Copies::Ahead);
    for (const Reader &reader : all)
      ahead.add(reader.op, reader.bytes);
  }
  for (auto &[body, each] : places)
    each.place();
}

/// Whether a value would not be away for as long as it is under way, counting
/// from one body to the other as if nothing came between them.
bool ActivationOffload::stays(const KeptValue &value) const {
  const CopyPlaces &behind = getPlaces(value.maker);
  double away = behind.getAway(value.maker);
  return away < 0 || llvm::any_of(value.readers, [&](Operation *reader) {
           const CopyPlaces &ahead = getPlaces(reader);
           double until = ahead.getAway(reader);
           return until < 0 || away + until < behind.getSeconds(value.maker) +
                                                  ahead.getSeconds(reader);
         });
}

BufferOp ActivationOffload::createBuffer(const KeptValue &value,
                                         StringRef suffix, Space space) {
  OpBuilder builder(program.getContext());
  BufferOp like = value.buffer;
  auto buffer = BufferOp::create(
      builder, like.getLoc(), (like.getSymName() + suffix).str(),
      Role::activation, space, /*offset=*/-1, like.getBytes(), /*slots=*/1,
      /*slot_stride=*/like.getBytes(), /*alias_of=*/nullptr, /*value=*/nullptr,
      /*source=*/nullptr, /*part=*/nullptr);
  buffers.insert(buffer);
  return buffer;
}

/// Values come in the order of the bodies and of their makers.
void ActivationOffload::takeAway() {
  for (size_t next = 0; next < kept.size();) {
    BodyOp body = kept[next].forward;
    CopyStream copies(body, kStream, kPass);
    for (; next < kept.size() && kept[next].forward == body; ++next) {
      const KeptValue &value = kept[next];
      BufferOp away =
          createBuffer(value, ("." + stringifySpace(space)).str(), space);
      ViewAttr there = getWhole(away, value.kind);
      size_t number = copies.add({{{value.maker, kComputeStream}},
                                  getWhole(value.buffer, value.kind),
                                  there,
                                  {},
                                  value.maker->getLoc()});
      copied[body].insert(value.maker);
      Operation *end = getPlaces(value.maker).getPlace(value.maker);
      bool isLast =
          next + 1 == kept.size() || kept[next + 1].forward != body ||
          getPlaces(value.maker).getPlace(kept[next + 1].maker) != end;
      if (end && isLast)
        copies.await(number, {end, kComputeStream});
      for (Operation *reader : value.readers) {
        BufferOp here =
            createBuffer(value, ".fetched", value.buffer.getSpace());
        fetches[reader].push_back({there, getWhole(here, value.kind)});
        fetched[reader->getParentOp()]
               [FlatSymbolRefAttr::get(value.buffer.getSymNameAttr())] =
                   FlatSymbolRefAttr::get(here.getSymNameAttr());
      }
    }
    copies.write();
  }
}

/// Has a body of the backward read what it fetches.
void ActivationOffload::bringBack(BodyOp body, const Names &names) {
  AttrTypeReplacer replacer;
  replacer.addReplacement([&](ViewAttr view) -> std::optional<Attribute> {
    auto name = names.find(view.getBuffer());
    if (name == names.end())
      return std::nullopt;
    return ViewAttr::get(view.getContext(), name->second, view.getOffset(),
                         view.getAxes(), view.getElement(), view.getShape(),
                         view.getStrides());
  });
  CopyStream copies(body, kStream, kPass);
  llvm::DenseMap<Attribute, size_t> there; ///< transfers, by what they bring
  for (Operation &op : body.getBody().front()) {
    if (auto own = fetches.find(&op); own != fetches.end()) {
      copied[body].insert(&op);
      Operation *start = getPlaces(&op).getPlace(&op);
      for (auto [from, to] : own->second) {
        CopyStream::Transfer transfer{{}, from, to, {}, op.getLoc()};
        if (start)
          transfer.behind.push_back({start, kComputeStream});
        there[to.getBuffer()] = copies.add(std::move(transfer));
      }
    }
    op.walk([&](CommandOpInterface command) {
      replacer.replaceElementsIn(command);
      std::optional<size_t> last;
      for (ViewAttr view : command.getReads())
        if (auto number = there.find(view.getBuffer()); number != there.end())
          last = std::max(last.value_or(0), number->second);
      if (last)
        copies.await(*last, {&op, command.getStreamName()});
    });
  }
  copies.write();
}

/// Bodies that wait for copies say so.
void ActivationOffload::tell() {
  auto module = program->getParentOfType<ModuleOp>();
  int64_t bytes = 0;
  for (const KeptValue &value : kept)
    bytes += value.buffer.getBytes();
  for (auto &[body, ops] : copied) {
    double waiting = getPlaces(ops.front()).getWaiting(ops.getArrayRef());
    bool waits = waiting > kMostWaiting;
    if (waits)
      body->setAttr(kCopiesWaitAttr, Builder(body).getF64FloatAttr(waiting));
    cost::Decision decision{
        "offloaded activations",
        ("@" + cast<BodyOp>(body).getSymName() + " of @" + program.getSymName())
            .str(),
        {llvm::formatv("{0} of {1} values", kept.size(), count), std::nullopt,
         bytes, ""},
        {},
        waits ? llvm::formatv("offload.activations; it waits for copies for "
                              "{0:P1} of its time",
                              waiting)
                    .str()
              : "offload.activations; copies hide behind the computation"};
    cost::tell(module, decision);
  }
}
} // namespace accel::plan
