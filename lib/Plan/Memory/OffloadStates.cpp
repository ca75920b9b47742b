// Keeps states in the host's memory and brings each to the device where a
// command needs it: all of it, or the tile that the command is cut to. In a
// body that needs any a stream of copies works ahead of the computation: it
// fetches what the next command needs while this one computes, and puts back
// what the last one has left. What the device holds at once is bounded: when
// that many are there, the one that is needed again last makes room for the
// next (Belady 1966).

#include "CopyStream.h"

#include "dialects/Interfaces/KernelSource.h"
#include "dialects/Plan/Offloaded.h"
#include "lib/Plan/BufferTable.h"
#include "lib/Plan/Passes.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;

namespace accel::plan {
#define GEN_PASS_DEF_OFFLOADSTATESPASS
#include "lib/Plan/Passes.h.inc"

namespace {
/// What a command of a body does with an offloaded state, or a tile of one.
struct StateTouch {
  bool reads = false, writes = false;
  bool fills = false; ///< writes all of it before it reads any
};

/// An op of a body, and the offloaded states that it touches: those of all of
/// its commands, if it is a group of messages, which go together. A state, or a
/// tile of one, is named by its view where it lies.
struct User : CopyStream::User {
  SmallVector<CommandOpInterface, 1> commands;
  llvm::MapVector<ViewAttr, StateTouch> states;
};

/// A state, or a tile of one, from when it is fetched until it makes room.
struct Stay {
  ViewAttr state, staged;
  Location loc;
  /// What its users wait for: that it is there or, where nothing is fetched,
  /// that there is room.
  std::optional<size_t> ready = {};
  bool isWritten = false;
  /// Of each stream, the last user.
  llvm::MapVector<StringRef, size_t> last = {};

  size_t getLastUse() const {
    size_t use = 0;
    for (auto &[stream, user] : last)
      use = std::max(use, user);
    return use;
  }
};

/// Of an offloaded state, the space where it was, which it is staged in, and
/// the location of what it stages: that of the state, which says its layer.
struct Origin {
  Space space;
  Location loc;
};
using Origins = llvm::DenseMap<BufferOp, Origin>;

/// One body.
class StateOffload {
public:
  /// `most` states are staged at once; 0: those of two commands.
  StateOffload(BodyOp body, BufferTable &buffers, const Origins &origins,
               size_t most)
      : body(body), buffers(buffers), origins(origins), most(most),
        copies(body, "offload", "plan-offload-states") {}

  void run() {
    findUsers();
    if (isAside())
      return stageAside();
    for (size_t number = 0; number < users.size(); ++number)
      serve(number);
    while (!staying.empty())
      leave(findOldest(), /*isLast=*/true);
    copies.write();
  }

private:
  void findUsers();
  bool isAside();
  void stageAside();
  ViewAttr createStaged(ViewAttr state);
  void serve(size_t number);
  void serveMoved(size_t number);
  void makeRoom(size_t number);
  void leaveOverlapping(ViewAttr state);
  void fetch(ViewAttr state, StateTouch touch);
  void leave(size_t which, bool isLast = false);
  size_t findOldest() const;
  std::optional<size_t> findVictim(size_t number) const;
  size_t findNextUse(ViewAttr state, size_t number) const;
  bool isWhole(ViewAttr view) const {
    return view.isContiguous() && view.getOffset() == 0 &&
           view.getAxes().empty() &&
           view.getSpanBytes() == int64_t(buffers.lookup(view).getBytes());
  }
  BufferOp findState(ViewAttr view) const {
    BufferOp buffer = buffers.lookup(view);
    return origins.contains(buffer) ? buffer : BufferOp();
  }
  bool isMoved(Operation *op) const;
  static bool isStagedAlone(Operation *op, ViewAttr view) {
    auto tiles = op->getAttrOfType<ArrayAttr>(kTileAttr);
    return tiles && llvm::is_contained(tiles, view.getBuffer());
  }
  ViewAttr getWhole(BufferOp buffer, ViewAttr like);
  static void rename(Operation *op, ViewAttr from, ViewAttr to);

  BodyOp body;
  BufferTable &buffers;
  const Origins &origins;
  size_t most;
  CopyStream copies;
  std::vector<User> users;
  /// Of each state or tile, the users that need it on the device.
  llvm::DenseMap<ViewAttr, SmallVector<size_t>> uses;
  llvm::DenseMap<Operation *, ViewAttr> wholes; ///< of buffers, what names them
  SmallVector<Stay> staying;
};
} // namespace

/// What copies all of something else to all of a state goes straight to the
/// host.
bool StateOffload::isMoved(Operation *op) const {
  auto copy = dyn_cast<CopyOp>(op);
  return copy && findState(copy.getTarget()) && !findState(copy.getSource()) &&
         isWhole(copy.getTarget()) && copy.getSource().isContiguous();
}

void StateOffload::findUsers() {
  body.walk([&](CommandOpInterface command) {
    // What a state begins with is read to where it lies.
    if (isa<ReadOp>(command.getOperation()))
      return;
    Operation *op = body.getBody().front().findAncestorOpInBlock(*command);
    command.forEachView([&](ViewAttr view, Access access) {
      BufferOp state = findState(view);
      if (!state || access == Access::None)
        return;
      if (users.empty() || users.back().op != op) {
        users.emplace_back();
        users.back().op = op;
        users.back().stream = command.getStreamName();
      }
      User &user = users.back();
      if (user.commands.empty() || user.commands.back() != command)
        user.commands.push_back(command);
      bool isTile = isStagedAlone(command, view);
      StateTouch &touch = user.states[isTile ? view : getWhole(state, view)];
      touch.reads |= access != Access::Write;
      touch.writes |= access != Access::Read;
      touch.fills |= access == Access::Write && (isTile || isWhole(view));
    });
  });
  for (auto [number, user] : llvm::enumerate(users))
    for (auto &[state, touch] : user.states)
      if (SmallVector<size_t> &own = uses[state]; !isMoved(user.op))
        own.push_back(number);
}

/// The number of the first user behind one that needs a state; as many as there
/// are users where none does.
size_t StateOffload::findNextUse(ViewAttr state, size_t number) const {
  ArrayRef<size_t> all = uses.find(state)->second;
  auto next = llvm::upper_bound(all, number);
  return next == all.end() ? users.size() : *next;
}

size_t StateOffload::findOldest() const {
  return llvm::min_element(staying,
                           [](const Stay &lhs, const Stay &rhs) {
                             return lhs.getLastUse() < rhs.getLastUse();
                           }) -
         staying.begin();
}

/// What makes room for what a user needs: the state that is needed again last,
/// of several the one that is done with first.
std::optional<size_t> StateOffload::findVictim(size_t number) const {
  std::optional<size_t> victim;
  auto rank = [&](size_t which) {
    const Stay &stay = staying[which];
    return std::pair(findNextUse(stay.state, number),
                     users.size() - stay.getLastUse());
  };
  for (size_t which = 0; which < staying.size(); ++which)
    if (!users[number].states.contains(staying[which].state) &&
        (!victim || rank(which) > rank(*victim)))
      victim = which;
  return victim;
}

/// All of a buffer, in elements of the first view that was asked with.
ViewAttr StateOffload::getWhole(BufferOp buffer, ViewAttr like) {
  ViewAttr &whole = wholes[buffer];
  if (whole)
    return whole;
  SmallVector<int64_t> shape(like.getShape());
  int64_t count = int64_t(buffer.getBytes()) / like.getElementBytes();
  if (!like.isContiguous() || like.getNumElements() != count)
    shape = {count};
  return whole = ViewAttr::get(buffer.getContext(),
                               FlatSymbolRefAttr::get(buffer.getSymNameAttr()),
                               0, {}, like.getElement(), shape,
                               StridedView::contiguous(shape).strides);
}

/// What `op` has of `from` it has of what is staged instead. Of a buffer it
/// names either a tile or anything within all of it.
void StateOffload::rename(Operation *op, ViewAttr from, ViewAttr to) {
  bool isTile = isStagedAlone(op, from);
  AttrTypeReplacer replacer;
  replacer.addReplacement([&](ViewAttr view) -> std::optional<Attribute> {
    if (view.getBuffer() != from.getBuffer())
      return std::nullopt;
    if (isTile)
      return to;
    return ViewAttr::get(view.getContext(), to.getBuffer(), view.getOffset(),
                         view.getAxes(), view.getElement(), view.getShape(),
                         view.getStrides());
  });
  replacer.replaceElementsIn(op);
}

/// Bytes for a state, or for a tile of one alone.
ViewAttr StateOffload::createStaged(ViewAttr state) {
  BufferOp buffer = buffers.lookup(state);
  OpBuilder builder(buffer->getContext());
  auto [space, loc] = origins.find(buffer)->second;
  int64_t bytes = state.getSpanBytes();
  BufferOp staged =
      BufferOp::create(builder, loc, (buffer.getSymName() + ".staged").str(),
                       Role::activation, space, /*offset=*/-1, bytes,
                       /*slots=*/1, /*slot_stride=*/bytes, /*alias_of=*/nullptr,
                       /*value=*/nullptr, /*source=*/nullptr, /*part=*/nullptr);
  buffers.insert(staged);
  return ViewAttr::get(
      builder.getContext(), FlatSymbolRefAttr::get(staged.getSymNameAttr()), 0,
      {}, state.getElement(), state.getShape(), state.getStrides());
}

/// Whether what needs states is on a stream that waits for other bodies: a
/// message, which goes when its value is there, whatever the computation has
/// come to meanwhile. Nothing here may wait for that.
bool StateOffload::isAside() {
  return llvm::any_of(body.getOps<WaitOp>(), [&](WaitOp wait) {
    return wait.getBodyAttr() && wait.getStream() != "compute" &&
           llvm::any_of(users, [&](const User &user) {
             return user.stream == wait.getStream();
           });
  });
}

/// Copies on the stream of each user itself, in front of it and behind it.
void StateOffload::stageAside() {
  for (User &user : users)
    for (auto &[state, touch] : user.states) {
      ViewAttr host = state, device = createStaged(state);
      OpBuilder builder(user.op);
      auto copy = [&](ViewAttr from, ViewAttr to) {
        CopyOp::create(builder, user.op->getLoc(), from, to, user.stream)
            ->setAttr(kInsertedByAttr,
                      builder.getStringAttr("plan-offload-states"));
      };
      if (touch.reads || !touch.fills)
        copy(host, device);
      builder.setInsertionPointAfter(user.op);
      if (touch.writes)
        copy(device, host);
      for (CommandOpInterface command : user.commands)
        rename(command, host, device);
    }
}

void StateOffload::fetch(ViewAttr state, StateTouch touch) {
  Stay stay{state, createStaged(state), buffers.lookup(state).getLoc()};
  if (touch.reads || !touch.fills)
    copies.add({{}, stay.state, stay.staged, {}, stay.loc});
  if (copies.size() > 0)
    stay.ready = copies.size() - 1;
  staying.push_back(std::move(stay));
}

/// A command that needs more at once than there is room for has them all.
/// Without a bound the command before, which may be under way, has its own.
void StateOffload::makeRoom(size_t number) {
  if (most == 0) {
    for (size_t which = 0; which < staying.size();)
      if (!users[number].states.contains(staying[which].state) &&
          staying[which].getLastUse() + 1 < number)
        leave(which);
      else
        ++which;
    return;
  }
  while (staying.size() >= most) {
    std::optional<size_t> victim = findVictim(number);
    if (!victim)
      return;
    leave(*victim);
  }
}

/// Bytes that are staged in one place are staged nowhere else: all of a state,
/// and tiles of it, do not know of each other.
void StateOffload::leaveOverlapping(ViewAttr state) {
  auto overlaps = [&](ViewAttr other) {
    int64_t begin = state.getOffset(), end = begin + state.getSpanBytes();
    // Along the same axes both are the same rank's.
    bool isApart = other.getAxes() == state.getAxes() &&
                   (other.getOffset() >= end ||
                    begin >= other.getOffset() + other.getSpanBytes());
    return other.getBuffer() == state.getBuffer() && !isApart;
  };
  for (size_t which = 0; which < staying.size();)
    if (overlaps(staying[which].state))
      leave(which);
    else
      ++which;
}

/// Puts back what has been written, when all that touch it are done. What
/// comes in its place waits for that, too; behind the last nothing comes.
void StateOffload::leave(size_t which, bool isLast) {
  Stay stay = std::move(staying[which]);
  staying.erase(staying.begin() + which);
  if (isLast && !stay.isWritten)
    return;
  CopyStream::Transfer transfer{{}, {}, {}, {}, stay.loc};
  for (auto &[stream, user] : stay.last)
    transfer.behind.push_back(users[user]);
  if (stay.isWritten) {
    transfer.from = stay.staged;
    transfer.to = stay.state;
  }
  copies.add(std::move(transfer));
}

void StateOffload::serveMoved(size_t number) {
  User &user = users[number];
  FlatSymbolRefAttr state = user.states.begin()->first.getBuffer();
  // What is there is read no more. The stream has to wait for the copy, and so
  // would those that are done with.
  for (size_t which = 0; which < staying.size();) {
    Stay &stay = staying[which];
    if (stay.state.getBuffer() == state)
      stay.isWritten = false;
    else if (findNextUse(stay.state, number) != users.size()) {
      ++which;
      continue;
    }
    leave(which);
  }
  copies.add({{user}, {}, {}, cast<CopyOp>(user.op), user.op->getLoc()});
}

void StateOffload::serve(size_t number) {
  User &user = users[number];
  if (isMoved(user.op))
    return serveMoved(number);
  std::optional<size_t> ready;
  for (auto &[state, touch] : user.states) {
    auto isOf = [&, state = state](Stay &stay) { return stay.state == state; };
    auto found = llvm::find_if(staying, isOf);
    if (found == staying.end()) {
      leaveOverlapping(state);
      makeRoom(number);
      fetch(state, touch);
      found = std::prev(staying.end());
    }
    if (found->ready)
      ready = std::max(ready.value_or(0), *found->ready);
    found->isWritten |= touch.writes;
    found->last[user.stream] = number;
    for (CommandOpInterface command : user.commands)
      rename(command, found->state, found->staged);
  }
  if (ready)
    copies.await(*ready, user);
}

namespace {
struct OffloadStatesPass : impl::OffloadStatesPassBase<OffloadStatesPass> {
  using Base::Base;

  void runOnOperation() override {
    if (bufferCount < 0) {
      getOperation().emitError()
          << "expected room for at least one offloaded state, or 0, found "
          << int64_t(bufferCount);
      return signalPassFailure();
    }
    SymbolTable symbols(getOperation());
    for (auto program : getOperation().getOps<ProgramOp>())
      runOnProgram(program, symbols);
  }

  void runOnProgram(ProgramOp program, const SymbolTable &symbols) {
    BufferTable buffers(program);
    Origins origins;
    for (auto buffer : program.getOps<BufferOp>()) {
      auto place =
          dyn_cast_or_null<SpaceAttr>(buffer->removeAttr(kOffloadedAttr));
      if (!place)
        continue;
      Operation *state = symbols.lookup(buffer.getSourceAttr().getAttr());
      origins.try_emplace(
          buffer,
          Origin{buffer.getSpace(), state ? state->getLoc() : buffer.getLoc()});
      buffer.setSpace(place.getValue());
    }
    if (origins.empty())
      return;
    for (auto body : program.getOps<BodyOp>())
      StateOffload(body, buffers, origins, size_t(bufferCount)).run();
  }
};
} // namespace
} // namespace accel::plan
