// Keeps what the optimizer remembers of each parameter in the host's memory and
// brings it to the device for its update. In a body that needs it a stream of
// copies works ahead of the computation: it fetches what the next command needs
// while this one computes, and puts back what the last one has left. What the
// device holds at once is bounded: when that many are there, the one that is
// needed again last makes room for the next (Belady 1966).

#include "dialects/Interfaces/KernelSource.h"
#include "dialects/NN/NN.h"
#include "lib/Plan/BufferTable.h"
#include "lib/Plan/Passes.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

#include <map>

using namespace mlir;

namespace accel::plan {
#define GEN_PASS_DEF_OFFLOADSTATESPASS
#include "lib/Plan/Passes.h.inc"

namespace {
constexpr StringLiteral kStream = "offload";
constexpr StringLiteral kComputeStream = "compute";

/// What a command of a body does with an offloaded state.
struct Touch {
  bool reads = false, writes = false;
  bool fills = false; ///< writes all of it before it reads any
};

/// An op of a body, and the offloaded states that it touches.
struct User {
  Operation *op;
  StringRef stream;
  llvm::MapVector<BufferOp, Touch> states;
};

/// A state from when it is fetched until it makes room.
struct Stay {
  BufferOp state, staged;
  /// What its first user waits for, by its number among what the stream does:
  /// that it is there or, where nothing is fetched, that there is room.
  std::optional<size_t> ready;
  bool isWritten = false;
  std::map<StringRef, size_t> last; ///< the last user of each stream
};

/// Something that the stream of copies does, behind some users.
struct Transfer {
  std::map<StringRef, size_t> behind; ///< the last of each stream
  ViewAttr from, to;                  ///< null: nothing but wait
  BufferOp state;
  CopyOp moved; ///< of the body, which the stream does where it stands
  bool isAwaited = false;
};

/// One body.
class Offload {
public:
  Offload(BodyOp body, BufferTable &buffers,
          const llvm::DenseMap<StringAttr, BufferOp> &states, size_t most)
      : body(body), buffers(buffers), states(states), most(most) {}

  LogicalResult run() {
    if (failed(findUsers()))
      return failure();
    if (users.empty())
      return success();
    for (size_t number = 0; number < users.size(); ++number)
      serve(number);
    while (!staying.empty())
      leave(findOldest());
    write();
    return success();
  }

private:
  LogicalResult findUsers();
  void serve(size_t number);
  void makeRoom(size_t number);
  void fetch(size_t number, BufferOp state, Touch touch);
  void leave(size_t which);
  size_t findOldest() const;
  std::optional<size_t> findVictim(size_t number) const;
  size_t findNextUse(BufferOp state, size_t number) const;
  bool isWhole(ViewAttr view) const {
    return view.isContiguous() && view.getOffset() == 0 &&
           view.getAxes().empty() &&
           view.getSpanBytes() == int64_t(buffers.lookup(view).getBytes());
  }
  BufferOp findState(ViewAttr view) const {
    return states.lookup(view.getBuffer().getAttr());
  }
  bool isMoved(Operation *op) const;
  static ViewAttr getWhole(BufferOp buffer, ViewAttr like);
  static void rename(Operation *op, BufferOp from, BufferOp to);
  void write();
  void await(size_t transfer, Operation *op, StringRef stream);
  static std::string nameOf(StringRef what, size_t number) {
    return ("offload_" + what + "_" + Twine(number)).str();
  }

  BodyOp body;
  BufferTable &buffers;
  const llvm::DenseMap<StringAttr, BufferOp> &states;
  size_t most;
  SmallVector<User> users;
  /// Of each state, the users that need it on the device.
  llvm::DenseMap<Operation *, SmallVector<size_t>> uses;
  llvm::DenseMap<Operation *, ViewAttr> kinds; ///< of a state, a view of it
  SmallVector<Stay> staying;
  std::vector<Transfer> transfers;
  /// Of each user that must wait, the last transfer that it waits for.
  std::map<size_t, size_t> awaited;
  std::map<StringRef, size_t> known; ///< of each stream, what it has waited for
};
} // namespace

/// What stands in the body itself and copies all of something else to all of a
/// state goes straight to the host.
bool Offload::isMoved(Operation *op) const {
  auto copy = dyn_cast<CopyOp>(op);
  return copy && op->getParentOp() == body && findState(copy.getTarget()) &&
         !findState(copy.getSource()) && isWhole(copy.getTarget()) &&
         copy.getSource().isContiguous();
}

LogicalResult Offload::findUsers() {
  WalkResult result = body.walk([&](CommandOpInterface command) {
    // What the state begins with is read to where it lies.
    if (isa<ReadOp>(command.getOperation()))
      return WalkResult::advance();
    User user{command, command.getStreamName(), {}};
    command.forEachView([&](ViewAttr view, Access access) {
      BufferOp state = findState(view);
      if (!state || access == Access::None)
        return;
      auto [found, isNew] = user.states.insert({state, {}});
      Touch &touch = found->second;
      touch.reads |= access != Access::Write;
      touch.writes |= access != Access::Read;
      touch.fills |= access == Access::Write && isWhole(view);
      kinds.try_emplace(state, view);
    });
    if (user.states.empty())
      return WalkResult::advance();
    if (command->getParentOp() != body) {
      command.emitOpError()
          << "expected no offloaded state in a group of messages, found @"
          << user.states.begin()->first.getSymName();
      return WalkResult::interrupt();
    }
    for (auto &[state, touch] : user.states)
      if (SmallVector<size_t> &own = uses[state]; !isMoved(command))
        own.push_back(users.size());
    users.push_back(std::move(user));
    return WalkResult::advance();
  });
  return failure(result.wasInterrupted());
}

/// The number of the first user behind one that needs a state; as many as there
/// are users where none does.
size_t Offload::findNextUse(BufferOp state, size_t number) const {
  ArrayRef<size_t> all = uses.find(state)->second;
  auto next = llvm::upper_bound(all, number);
  return next == all.end() ? users.size() : *next;
}

static size_t getLastUse(const Stay &stay) {
  size_t last = 0;
  for (auto &[stream, user] : stay.last)
    last = std::max(last, user);
  return last;
}

size_t Offload::findOldest() const {
  auto oldest =
      llvm::min_element(staying, [](const Stay &lhs, const Stay &rhs) {
        return getLastUse(lhs) < getLastUse(rhs);
      });
  return oldest - staying.begin();
}

/// What makes room for what a user needs: the state that is needed again last,
/// of several the one that is done with first.
std::optional<size_t> Offload::findVictim(size_t number) const {
  std::optional<size_t> victim;
  auto rank = [&](size_t which) {
    const Stay &stay = staying[which];
    return std::pair(findNextUse(stay.state, number),
                     users.size() - getLastUse(stay));
  };
  for (size_t which = 0; which < staying.size(); ++which)
    if (!users[number].states.contains(staying[which].state) &&
        (!victim || rank(which) > rank(*victim)))
      victim = which;
  return victim;
}

/// All of a buffer, in elements of those that a view is of.
ViewAttr Offload::getWhole(BufferOp buffer, ViewAttr like) {
  SmallVector<int64_t> shape(like.getShape()), strides(like.getStrides());
  int64_t count = int64_t(buffer.getBytes()) / like.getElementBytes();
  if (!like.isContiguous() || like.getNumElements() != count)
    shape = {count};
  return ViewAttr::get(
      buffer.getContext(), FlatSymbolRefAttr::get(buffer.getSymNameAttr()), 0,
      {}, like.getElement(), shape, StridedView::contiguous(shape).strides);
}

/// Everything in `op` that names one buffer names the other instead.
void Offload::rename(Operation *op, BufferOp from, BufferOp to) {
  auto old = FlatSymbolRefAttr::get(from.getSymNameAttr());
  auto name = FlatSymbolRefAttr::get(to.getSymNameAttr());
  AttrTypeReplacer replacer;
  replacer.addReplacement([&](ViewAttr view) -> std::optional<Attribute> {
    if (view.getBuffer() != old)
      return std::nullopt;
    return ViewAttr::get(view.getContext(), name, view.getOffset(),
                         view.getAxes(), view.getElement(), view.getShape(),
                         view.getStrides());
  });
  replacer.replaceElementsIn(op);
}

void Offload::fetch(size_t number, BufferOp state, Touch touch) {
  Stay stay;
  stay.state = state;
  OpBuilder builder(state->getContext());
  stay.staged = BufferOp::create(
      builder, state.getLoc(), (state.getSymName() + ".staged").str(),
      Role::activation, Space::device, /*offset=*/-1, state.getBytes(),
      /*slots=*/1, /*slot_stride=*/state.getBytes(), /*alias_of=*/nullptr,
      /*value=*/nullptr, /*source=*/nullptr, /*part=*/nullptr);
  buffers.insert(stay.staged);
  if (touch.reads || !touch.fills) {
    ViewAttr kind = kinds.lookup(state);
    transfers.push_back(
        {{}, getWhole(state, kind), getWhole(stay.staged, kind), state, {}});
  }
  if (!transfers.empty()) {
    stay.ready = transfers.size() - 1;
    awaited[number] = *stay.ready;
  }
  staying.push_back(std::move(stay));
}

/// A command that needs more at once than there is room for has them all.
void Offload::makeRoom(size_t number) {
  while (staying.size() >= most) {
    std::optional<size_t> victim = findVictim(number);
    if (!victim)
      return;
    leave(*victim);
  }
}

/// Puts back what has been written, when all that touch it are done. What
/// comes in its place waits for that, too.
void Offload::leave(size_t which) {
  Stay stay = std::move(staying[which]);
  staying.erase(staying.begin() + which);
  Transfer transfer;
  transfer.behind = stay.last;
  transfer.state = stay.state;
  if (stay.isWritten) {
    ViewAttr kind = kinds.lookup(stay.state);
    transfer.from = getWhole(stay.staged, kind);
    transfer.to = getWhole(stay.state, kind);
  }
  transfers.push_back(std::move(transfer));
}

void Offload::serve(size_t number) {
  User &user = users[number];
  if (isMoved(user.op)) {
    BufferOp state = user.states.begin()->first;
    // The stream has to wait for it, and so would they.
    auto isDone = [&](const Stay &stay) {
      return findNextUse(stay.state, number) == users.size();
    };
    for (size_t which = 0; which < staying.size();)
      if (staying[which].state != state && isDone(staying[which]))
        leave(which);
      else
        ++which;
    // What is there is read no more.
    for (size_t which = staying.size(); which-- > 0;)
      if (staying[which].state == state) {
        staying[which].isWritten = false;
        leave(which);
      }
    Transfer transfer;
    transfer.behind[user.stream] = number;
    transfer.state = state;
    transfer.moved = cast<CopyOp>(user.op);
    transfers.push_back(std::move(transfer));
    return;
  }
  for (auto &[state, touch] : user.states) {
    auto found = llvm::find_if(staying, [&, state = state](Stay &stay) {
      return stay.state == state;
    });
    if (found == staying.end()) {
      makeRoom(number);
      fetch(number, state, touch);
      found = std::prev(staying.end());
    } else if (found->ready) {
      awaited[number] = std::max(awaited[number], *found->ready);
    }
    found->isWritten |= touch.writes;
    found->last[user.stream] = number;
    rename(user.op, state, found->staged);
  }
}

/// Has a stream wait in front of an op until a transfer is done.
void Offload::await(size_t transfer, Operation *op, StringRef stream) {
  transfers[transfer].isAwaited = true;
  OpBuilder builder(op);
  WaitOp::create(builder, op->getLoc(), nameOf("there", transfer),
                 FlatSymbolRefAttr(), stream);
}

/// Writes what the stream does, each where a device can be told of it: behind
/// the records that it waits for.
void Offload::write() {
  Block &block = body.getBody().front();
  // What waits first, since that is what has to be told of.
  for (auto [number, transfer] : awaited) {
    User &user = users[number];
    auto [at, isNew] = known.try_emplace(user.stream, transfer);
    if (!isNew && at->second >= transfer)
      continue;
    at->second = transfer;
    await(transfer, user.op, user.stream);
  }
  for (size_t number = 0; number < transfers.size(); ++number) {
    // Whoever writes what the stream still copies.
    CopyOp copy = transfers[number].moved;
    if (!copy)
      continue;
    for (Operation *op = copy->getNextNode(); op; op = op->getNextNode()) {
      auto command = dyn_cast<CommandOpInterface>(op);
      if (command && llvm::any_of(command.getWrites(), [&](ViewAttr view) {
            return view.getBuffer() == copy.getSource().getBuffer();
          })) {
        await(number, op, command.getStreamName());
        break;
      }
    }
  }
  // The staged bytes may be what others had before the body.
  OpBuilder builder = OpBuilder::atBlockBegin(&block);
  RecordOp::create(builder, body.getLoc(), "offload_begin", kComputeStream);
  auto begin = WaitOp::create(builder, body.getLoc(), "offload_begin",
                              FlatSymbolRefAttr(), kStream);
  Operation *last = begin; ///< behind which the stream's next op stands
  std::map<StringRef, size_t> waitedFor; ///< of each stream, so many users
  for (size_t number = 0; number < transfers.size(); ++number) {
    Transfer &transfer = transfers[number];
    for (auto &[stream, user] : transfer.behind) {
      Operation *op = users[user].op;
      std::string event = nameOf("done", user);
      if (transfer.moved) {
        // The stream does it itself, behind all that was before it.
        OpBuilder before(op);
        RecordOp::create(before, op->getLoc(), event, stream);
        WaitOp::create(before, op->getLoc(), event, FlatSymbolRefAttr(),
                       kStream);
        transfer.moved.setStream(kStream);
        waitedFor[stream] = std::max(waitedFor[stream], user + 1);
        last = op;
        continue;
      }
      // Events of a stream come in order.
      if (std::exchange(waitedFor[stream],
                        std::max(waitedFor[stream], user + 1)) > user)
        continue;
      OpBuilder after(op->getContext());
      after.setInsertionPointAfter(op);
      Operation *record = RecordOp::create(after, op->getLoc(), event, stream);
      if (last->isBeforeInBlock(record))
        last = record;
      builder.setInsertionPointAfter(last);
      last = WaitOp::create(builder, op->getLoc(), event, FlatSymbolRefAttr(),
                            kStream);
    }
    builder.setInsertionPointAfter(last);
    if (transfer.from) {
      last = CopyOp::create(builder, transfer.state.getLoc(), transfer.from,
                            transfer.to, kStream);
      last->setAttr(kInsertedByAttr,
                    builder.getStringAttr("plan-offload-states"));
      builder.setInsertionPointAfter(last);
    }
    if (transfer.isAwaited)
      last = RecordOp::create(builder, last->getLoc(), nameOf("there", number),
                              kStream);
  }
  builder.setInsertionPointToEnd(&block);
  RecordOp::create(builder, body.getLoc(), "offload_end", kStream);
  WaitOp::create(builder, body.getLoc(), "offload_end", FlatSymbolRefAttr(),
                 kComputeStream);
}

namespace {
struct OffloadStatesPass : impl::OffloadStatesPassBase<OffloadStatesPass> {
  using Base::Base;

  void runOnOperation() override {
    if (bufferCount < 1) {
      getOperation().emitError()
          << "expected room for at least one offloaded state, found "
          << int64_t(bufferCount);
      return signalPassFailure();
    }
    if (!optimizer)
      return;
    SymbolTable symbols(getOperation());
    for (auto program : getOperation().getOps<ProgramOp>())
      if (failed(runOnProgram(program, symbols)))
        return signalPassFailure();
  }

  LogicalResult runOnProgram(ProgramOp program, const SymbolTable &symbols) {
    BufferTable buffers(program);
    llvm::DenseMap<StringAttr, BufferOp> states;
    for (auto buffer : program.getOps<BufferOp>()) {
      if (buffer.getRole() != Role::state ||
          buffer.getSpace() != Space::device || !buffer.getSourceAttr())
        continue;
      auto state =
          symbols.lookup<nn::StateOp>(buffer.getSourceAttr().getAttr());
      if (!state || state.getRole() != nn::StateRole::moment)
        continue;
      buffer.setSpace(Space::host);
      states[buffer.getSymNameAttr()] = buffer;
    }
    for (auto body : program.getOps<BodyOp>())
      if (failed(Offload(body, buffers, states, size_t(bufferCount)).run()))
        return failure();
    return success();
  }
};
} // namespace
} // namespace accel::plan
