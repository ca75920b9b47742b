// One loop over what can be done, in four orders of their own: what leaves,
// what is to come, what has come, and what others of this machine have.

#include "Comm/RemoteTask.h"

#include <cstring>
#include <sched.h>

namespace accel::rt {
namespace {

/// Up to so many bytes leave before what has come is looked at: the other end
/// has them sooner. Of more, chunks leave and come in turn, so that what has
/// come is in the caches yet when it is added.
constexpr uint64_t kSentFirst = 1 << 20;

/// So many chunks of an exchange may leave before the other's have come. Two
/// keep the connection busy; with more, whoever is ahead fills the system's
/// buffers, megabytes whose pages are in no cache when they are read.
constexpr size_t kAhead = 2;

/// Elements that are copied before the network is looked at again.
constexpr int64_t kCopyElements = 1 << 16;

/// The requests of each ring: one that has none left waits for its own.
constexpr int kFirstRequest[] = {Staging::kSlots, 34, 0};
constexpr int kLastRequest[] = {34, Wire::kRequests, Staging::kSlots};

/// Whether elements lie in both tensors as they follow each other.
bool isPlain(const PairLayout &layout) {
  return layout.contiguousRuns() && layout.runLength() == layout.elements();
}

} // namespace

size_t wireOf(const HostRank &self, const std::string &stream) {
  const std::vector<std::string> &streams = self.memory.streams();
  return static_cast<size_t>(std::find(streams.begin(), streams.end(), stream) -
                             streams.begin());
}

int64_t chunkTag(size_t stream, uint64_t chunk, bool isResult) {
  return int64_t(1) << 28 | static_cast<int64_t>(stream & 31) << 23 |
         static_cast<int64_t>((2 * chunk + isResult) & 0x7fffff);
}
int64_t mailTag(int64_t tag) { return int64_t(1) << 29 | (tag & 0xfffffff); }

RemoteMover::RemoteMover(RemoteMoves moves, std::vector<View> views,
                         Combine combine, size_t stream, Carrier &carrier,
                         HostRank &self)
    : inputs(views.size()), outputs(views.size()), toTerm(views.size()),
      moves(std::move(moves)), views(std::move(views)), combine(combine),
      stream(stream), carrier(carrier), self(self),
      bell(self.memory.wires(self.rank)[stream].bell),
      staging(self.memory.staging(self.rank, stream)) {
  size_t most = 0;
  for (auto *list : {&this->moves.outs, &this->moves.ins})
    for (const RemoteMove &move : *list)
      most = std::max(most, move.lastTerm - move.firstTerm);
  sources.resize(most);
  uint64_t bytes = 0;
  for (const RemoteMove &move : this->moves.outs)
    bytes += move.bytes[1];
  sendsFirst = bytes <= kSentFirst;
  isExchange = !this->moves.ins.empty();
  for (const RemoteMove &move : this->moves.ins)
    isExchange &= move.needsOut > 0;
}

Status RemoteMover::connect() {
  for (const RemoteMove &move : moves.outs)
    for (int64_t target : move.targets)
      ACCEL_RT_RETURN_IF_ERROR(
          carrier.connect(/*sends=*/true, Staging::Out, target));
  for (const RemoteMove &move : moves.ins) {
    ACCEL_RT_RETURN_IF_ERROR(
        carrier.connect(/*sends=*/false, move.fromRing, move.from));
    for (int64_t target : move.targets)
      ACCEL_RT_RETURN_IF_ERROR(
          carrier.connect(/*sends=*/true, Staging::Combined, target));
  }
  return Status();
}

void RemoteMover::start() {
  for (int ring = 0; ring < Staging::kRings; ++ring)
    base[ring] = staging.first[ring].load();
  sent = posted = used = copied = copiedFragment = 0;
  combined = 0;
  copiedTo = 0;
}

void RemoteMover::end() {
  staging.first[Staging::Out].store(base[Staging::Out] + moves.outs.size());
  staging.first[Staging::Combined].store(base[Staging::Combined] +
                                         moves.numCombined);
  staging.first[Staging::In].store(base[Staging::In] + moves.ins.size());
}

bool RemoteMover::isDone() const {
  return sent == moves.outs.size() && used == moves.ins.size() &&
         copied == moves.locals.size() && numBusy == 0;
}

Status RemoteMover::run() {
  RankControl &signs = self.control.self();
  for (int look = 0; !isDone();) {
    uint32_t seen = bell.load();
    bool moved = false;
    ACCEL_RT_RETURN_IF_ERROR(goOn(moved));
    if (moved) {
      signs.progress.fetch_add(1, std::memory_order_relaxed);
      look = 0;
      continue;
    }
    if (++look < self.spin) {
      // A look asks the system anyway; there may be more ranks than cores.
      sched_yield();
      continue;
    }
    if (self.control.isAborted())
      return Status::error(kAbortedMessage);
    signs.waiting.store(true, std::memory_order_relaxed);
    ACCEL_RT_RETURN_IF_ERROR(carrier.wait(seen, !neighbours.empty()));
  }
  signs.waiting.store(false, std::memory_order_relaxed);
  return Status();
}

Status RemoteMover::goOn(bool &moved) {
  ACCEL_RT_RETURN_IF_ERROR(carrier.goOn(moved));
  moved |= freeRequests();
  moved |= receiveNext(); // before what is sent: then it has where to go
  while (sendNext()) {
    moved = true;
    if (!sendsFirst)
      break;
  }
  moved |= useNext();
  moved |= copyNext();
  return Status();
}

bool RemoteMover::freeRequests() {
  bool any = false;
  for (int i = 0; i < Wire::kRequests && numBusy; ++i) {
    if (!isOurs[i] || !carrier.finish(i))
      continue;
    any = true;
    isOurs[i] = false;
    --numBusy;
    --busy[ringOf[i]][slotOfRequest[i]];
    if (ringOf[i] == Staging::In)
      arrived[slotOfRequest[i]] = true;
  }
  return any;
}

/// Whether a chunk of that number can have its slot, and its messages.
bool RemoteMover::hasRoom(Staging::Ring ring, uint64_t number, size_t targets) {
  size_t slot = number % Staging::kSlots;
  if (busy[ring][slot] || staging.slots[ring][slot].readers.load())
    return false;
  size_t free = 0;
  for (int i = kFirstRequest[ring]; i < kLastRequest[ring]; ++i)
    free += !isOurs[i];
  return free >= targets;
}

void RemoteMover::request(Staging::Ring slots, uint64_t number,
                          const CarrierMessage &message) {
  int i = kFirstRequest[slots];
  while (isOurs[i])
    ++i;
  isOurs[i] = true;
  ringOf[i] = slots;
  slotOfRequest[i] = static_cast<uint8_t>(number % Staging::kSlots);
  ++busy[slots][number % Staging::kSlots];
  ++numBusy;
  carrier.begin(i, message);
}

char *RemoteMover::slotOf(int64_t rank, int ring, uint64_t number) {
  uint64_t slot =
      static_cast<uint64_t>(ring) * Staging::kSlots + number % Staging::kSlots;
  return self.memory.stagingSlots(rank, stream) + slot * Staging::kSlotBytes;
}

/// Combines what came with the terms of this machine.
void RemoteMover::fold(const RemoteMove &move, const char *came, char *target) {
  for (size_t f = move.firstFragment; f < move.lastFragment; ++f) {
    const Fragment &fragment = moves.fragments[f];
    const View &view = views[fragment.view];
    for (size_t term = move.firstTerm; term < move.lastTerm; ++term)
      sources[term - move.firstTerm] = inputs[fragment.view] +
                                       toTerm[fragment.view][term] +
                                       fragment.inputAt;
    Fold fold;
    if (came) {
      const void *data = came + fragment.at[move.comes == Fold::Term];
      (move.comesLast ? fold.after : fold.before) = data;
      (move.comesLast ? fold.afterIs : fold.beforeIs) = move.comes;
    }
    fold.sources = sources.data();
    fold.count = move.lastTerm - move.firstTerm;
    fold.isLast = move.isLast;
    foldElements(view.pack, view.dtype, combine, fold,
                 target + fragment.at[move.isLast], fragment.begin,
                 fragment.end);
  }
}

/// Copies a chunk of the input as it is.
void RemoteMover::fill(const RemoteMove &move, char *target) {
  for (size_t f = move.firstFragment; f < move.lastFragment; ++f) {
    const Fragment &fragment = moves.fragments[f];
    const View &view = views[fragment.view];
    copyElements(view.pack, view.bytes,
                 target + fragment.at[1] - fragment.begin * view.bytes,
                 inputs[fragment.view] + fragment.inputAt, fragment.begin,
                 fragment.end);
  }
}

/// Copies a chunk of elements into the output.
void RemoteMover::keep(size_t first, size_t last, const char *slot) {
  for (size_t f = first; f < last; ++f) {
    const Fragment &fragment = moves.fragments[f];
    const View &view = views[fragment.view];
    copyElements(view.unpack, view.bytes,
                 outputs[fragment.view] + fragment.outputAt,
                 slot + fragment.at[1] - fragment.begin * view.bytes,
                 fragment.begin, fragment.end);
  }
}

/// Where a chunk lies in the output, if it is there as it travels, the carrier
/// reaches it and nobody else needs it in a slot; null: it goes by a slot.
char *RemoteMover::findOutput(const RemoteMove &move) {
  const Fragment &only = moves.fragments[move.firstFragment];
  const View &view = views[only.view];
  char *place = outputs[only.view] + only.outputAt + only.begin * view.bytes;
  return move.isMine && move.isLast && !move.readers &&
                 move.lastFragment - move.firstFragment == 1 &&
                 isPlain(view.unpack) && carrier.reaches(place)
             ? place
             : nullptr;
}

void RemoteMover::publish(Staging::Ring ring, uint64_t number,
                          uint32_t readers) {
  if (!readers)
    return;
  StagingSlot &slot = staging.slots[ring][number % Staging::kSlots];
  slot.readers.store(readers);
  slot.ready.store(static_cast<uint32_t>(number + 1));
  for (int64_t rank : neighbours)
    self.memory.wires(rank)[stream].ring();
}

bool RemoteMover::sendNext() {
  if (sent == moves.outs.size() ||
      (isExchange && !sendsFirst && sent >= used + kAhead))
    return false;
  const RemoteMove &move = moves.outs[sent];
  uint64_t number = base[Staging::Out] + sent;
  if (!hasRoom(Staging::Out, number, move.targets.size()))
    return false;
  char *data = slotOf(self.rank, Staging::Out, number);
  const Fragment &only = moves.fragments[move.firstFragment];
  const View &view = views[only.view];
  if (move.folds()) {
    fold(move, nullptr, data);
  } else if (move.lastFragment - move.firstFragment == 1 &&
             isPlain(view.pack)) {
    data = inputs[only.view] + only.inputAt + only.begin * view.bytes;
  } else {
    fill(move, data);
  }
  for (int64_t target : move.targets)
    request(Staging::Out, number,
            {/*sends=*/true, Staging::Out, target, move.tagOut, data,
             move.bytes[!move.folds() || move.isLast]});
  ++sent;
  return true;
}

/// Whether nobody reads what that many of `outs` took from the input any more.
bool RemoteMover::haveLeft(size_t outs) const {
  return sent >= outs && (sent >= outs + Staging::kSlots ||
                          !busy[Staging::Out][(base[Staging::Out] + outs - 1) %
                                              Staging::kSlots]);
}

bool RemoteMover::receiveNext() {
  bool any = false;
  while (posted < moves.ins.size() && posted < used + Staging::kSlots) {
    const RemoteMove &move = moves.ins[posted];
    uint64_t number = base[Staging::In] + posted;
    if (!hasRoom(Staging::In, number, 1))
      return any;
    size_t slot = number % Staging::kSlots;
    char *place = move.folds() ? nullptr : findOutput(move);
    if (!place)
      place = slotOf(self.rank, Staging::In, number);
    arrived[slot] = false;
    cameAt[slot] = place;
    request(Staging::In, number,
            {/*sends=*/false, move.fromRing, move.from, move.tagIn, place,
             move.bytes[move.comes == Fold::Term]});
    ++posted;
    any = true;
  }
  return any;
}

bool RemoteMover::useNext() {
  bool any = false;
  while (used < posted) {
    const RemoteMove &move = moves.ins[used];
    uint64_t number = base[Staging::In] + used;
    if (!arrived[number % Staging::kSlots])
      return any;
    char *came = cameAt[number % Staging::kSlots];
    if (move.folds()) {
      uint64_t next = base[Staging::Combined] + combined;
      if (!hasRoom(Staging::Combined, next, move.targets.size()) ||
          (move.needsOut && !haveLeft(move.needsOut)))
        return any;
      char *slot = slotOf(self.rank, Staging::Combined, next),
           *output = findOutput(move), *place = output ? output : slot;
      fold(move, came, place);
      for (int64_t target : move.targets)
        request(Staging::Combined, next,
                {/*sends=*/true, Staging::Combined, target, move.tagOut, place,
                 move.bytes[move.isLast]});
      publish(Staging::Combined, next, move.readers);
      if (move.isMine && !output)
        keep(move.firstFragment, move.lastFragment, slot);
      ++combined;
    } else {
      publish(Staging::In, number, move.readers);
      if (move.isMine && came == slotOf(self.rank, Staging::In, number))
        keep(move.firstFragment, move.lastFragment, came);
    }
    arrived[number % Staging::kSlots] = false;
    ++used;
    any = true;
  }
  return any;
}

/// What others of this machine have: a slot, or a part of an input.
bool RemoteMover::copyNext() {
  if (copied == moves.locals.size())
    return false;
  const LocalMove &move = moves.locals[copied];
  if (move.ring != Staging::kRings) {
    Staging &theirs = self.memory.staging(move.publisher, stream);
    uint64_t number = theirs.first[move.ring].load() + move.ordinal;
    StagingSlot &slot = theirs.slots[move.ring][number % Staging::kSlots];
    if (slot.ready.load() != static_cast<uint32_t>(number + 1))
      return false;
    keep(move.firstFragment, move.lastFragment,
         slotOf(move.publisher, move.ring, number));
    if (slot.readers.fetch_sub(1) == 1)
      self.memory.wires(move.publisher)[stream].ring();
    ++copied;
    return true;
  }
  const Fragment &fragment =
      moves.fragments[move.firstFragment + copiedFragment];
  const View &view = views[fragment.view];
  size_t place =
      static_cast<size_t>(termOf[static_cast<size_t>(move.publisher)]);
  const char *source =
      inputs[fragment.view] + toTerm[fragment.view][place] + fragment.inputAt;
  char *target = outputs[fragment.view] + fragment.outputAt;
  int64_t from = fragment.begin + copiedTo,
          to = std::min(from + kCopyElements, fragment.end);
  if (source != target) // else it is gathered in place
    copyElements(view.direct, view.bytes, target, source, from, to);
  copiedTo += to - from;
  if (to < fragment.end)
    return true;
  copiedTo = 0;
  if (move.firstFragment + ++copiedFragment == move.lastFragment) {
    copiedFragment = 0;
    ++copied;
  }
  return true;
}

} // namespace accel::rt
