// Collectives over machines: every rank lists the same chunks in the same
// order, and keeps what it does itself.
//
// Sums keep the order of the group, so that they have the bits of as many ranks
// on one machine. Ranks of a machine that follow each other in the group are a
// segment: one of them adds their terms to what the segment before has sent, in
// accumulators, and sends it on; the last segment's is the result. Which rank
// of a segment does so changes from chunk to chunk. Where the last of two
// segments is one rank, it may as well send its term, which then is added last:
// half of the chunks go this way, so that both machines and directions have as
// much.
//
// What several ranks of a machine need goes there once, to one of them in turn,
// and the others read it in its slot.

#include "Comm/RemoteTask.h"

namespace accel::rt {
namespace {

using Kind = CollectiveKind;

class Builder {
public:
  Builder(const Transfers &all, size_t stream, HostRank &self)
      : all(all), group(all.group), stream(stream), self(self),
        members(static_cast<int64_t>(group.ranks.size())), outs(group.ranks),
        combined(group.ranks), ins(group.ranks) {
    for (int64_t place = 0; place < members; ++place) {
      if (place == 0 || machineOf(place) != machineOf(place - 1))
        segments.push_back({place, place});
      segments.back().second = place + 1;
      if (std::find(machines.begin(), machines.end(), machineOf(place)) ==
          machines.end())
        machines.push_back(machineOf(place));
    }
  }

  RemoteMoves build() {
    if (all.kind == Kind::AllReduce)
      eachChunk(-1, -1, [&] { addReduction(-1); });
    for (int64_t place = 0; place < members; ++place)
      if (all.kind == Kind::ReduceScatter)
        eachChunk(-1, place, [&] { addReduction(place); });
    for (int64_t from = 0; from < members && !all.reduces(); ++from) {
      if (all.kind == Kind::AllToAll) {
        for (int64_t to = 0; to < members; ++to)
          addMoves(from, to, {to});
        continue;
      }
      std::vector<int64_t> readers;
      for (int64_t to = 0; to < members; ++to)
        if (all.sources.empty() || all.sources[static_cast<size_t>(to)] == from)
          readers.push_back(to);
      addMoves(from, -1, readers);
    }
    return std::move(moves);
  }

private:
  /// Numbers that each place's next slot has.
  struct Counters {
    explicit Counters(const std::vector<int64_t> &ranks) : next(ranks.size()) {}
    uint64_t take(int64_t place) { return next[static_cast<size_t>(place)]++; }
    std::vector<uint64_t> next;
  };

  int64_t rankOf(int64_t place) const {
    return group.ranks[static_cast<size_t>(place)];
  }
  int64_t machineOf(int64_t place) const {
    return self.memory.machineOf(rankOf(place));
  }
  bool isMe(int64_t place) const { return place == group.index; }

  /// Calls f for every chunk of what goes from `from` to `to`; -1: from all, or
  /// the same to all. `first` and `last` are its fragments.
  template <class F> void eachChunk(int64_t from, int64_t to, F &&f) {
    uint64_t total = 0;
    for (const Transfer &transfer : all.all)
      total += static_cast<uint64_t>(transfer.layout.elements() *
                                     slotBytes(transfer));
    // Several chunks, so that they are under way together; but below this size
    // a message costs more than its bytes.
    uint64_t limit = std::min<uint64_t>(
        Staging::kSlotBytes,
        std::max<uint64_t>(128 << 10, (total / 8 + 63) / 64 * 64));
    uint64_t at[2] = {};
    first = last = moves.fragments.size();
    auto finish = [&] {
      if (last == first)
        return;
      bytes[0] = at[0];
      bytes[1] = at[1];
      isKept = false;
      f();
      if (!isKept) // nothing of this chunk is this rank's
        moves.fragments.resize(first);
      first = last = moves.fragments.size();
      at[0] = at[1] = 0;
      ++chunk;
    };
    for (size_t t = 0; t < all.all.size(); ++t) {
      const Transfer &transfer = all.all[t];
      for (int64_t begin = 0; begin < transfer.layout.elements();) {
        uint64_t room = limit > at[0] ? limit - at[0] : 0;
        int64_t count = static_cast<int64_t>(room) / slotBytes(transfer);
        if (count < 1) {
          finish();
          continue;
        }
        count = std::min(count, transfer.layout.elements() - begin);
        Fragment fragment{t, begin, begin + count, 0, 0, {at[0], at[1]}};
        if (all.isCut())
          fragment.inputAt = to * transfer.inputStep;
        if (from >= 0)
          fragment.outputAt = transfer.outputPiece[static_cast<size_t>(from)];
        moves.fragments.push_back(fragment);
        last = moves.fragments.size();
        at[0] += aligned(count * slotBytes(transfer));
        at[1] += aligned(count * transfer.bytes);
        begin += count;
      }
    }
    finish();
  }
  /// Elements of every type begin at multiples of their size.
  static uint64_t aligned(int64_t bytes) {
    return (static_cast<uint64_t>(bytes) + 7) / 8 * 8;
  }
  int64_t slotBytes(const Transfer &transfer) const {
    return all.reduces() ? accumulatorBytes(transfer.dtype) : transfer.bytes;
  }

  RemoteMove newMove() {
    RemoteMove move;
    move.firstFragment = first;
    move.lastFragment = last;
    move.bytes[0] = bytes[0];
    move.bytes[1] = bytes[1];
    isKept = true;
    return move;
  }

  /// The places of a machine among `readers`, rising, but for one.
  std::vector<int64_t> onMachine(int64_t machine,
                                 const std::vector<int64_t> &readers,
                                 int64_t without = -1) const {
    std::vector<int64_t> found;
    for (int64_t place : readers)
      if (machineOf(place) == machine && place != without)
        found.push_back(place);
    return found;
  }

  /// From a rank's input to the outputs of others (and its own).
  void addMoves(int64_t from, int64_t to, const std::vector<int64_t> &readers) {
    bool isHere = machineOf(from) == machineOf(group.index);
    bool reads =
        std::find(readers.begin(), readers.end(), group.index) != readers.end();
    if (isHere && reads) {
      // In no chunks: it is all there.
      first = moves.fragments.size();
      for (size_t t = 0; t < all.all.size(); ++t) {
        const Transfer &transfer = all.all[t];
        moves.fragments.push_back(
            {t,
             0,
             transfer.layout.elements(),
             all.isCut() ? to * transfer.inputStep : 0,
             transfer.outputPiece[static_cast<size_t>(from)],
             {}});
      }
      moves.locals.push_back(
          {first, moves.fragments.size(), rankOf(from), Staging::kRings, 0});
    }
    if (onMachine(machineOf(from), readers).size() == readers.size())
      return;
    eachChunk(from, to, [&] { addDelivery(from, readers); });
  }

  /// Takes a chunk that `from` has, in its input or in a slot, to the machines
  /// of those who read it.
  std::vector<int64_t> deliverTo(int64_t from, Staging::Ring ring,
                                 const std::vector<int64_t> &readers) {
    std::vector<int64_t> receivers;
    for (int64_t machine : machines) {
      std::vector<int64_t> there = onMachine(machine, readers);
      if (machine == machineOf(from) || there.empty())
        continue;
      int64_t receiver = there[chunk % there.size()];
      receivers.push_back(receiver);
      uint64_t ordinal = ins.take(receiver);
      if (isMe(receiver)) {
        RemoteMove move = newMove();
        move.from = rankOf(from);
        move.fromRing = ring;
        move.tagIn = chunkTag(stream, chunk, /*isResult=*/true);
        move.isMine = true;
        move.readers = static_cast<uint32_t>(there.size() - 1);
        moves.ins.push_back(std::move(move));
      } else if (std::find(there.begin(), there.end(), group.index) !=
                 there.end()) {
        isKept = true;
        moves.locals.push_back(
            {first, last, rankOf(receiver), Staging::In, ordinal});
      }
    }
    return receivers;
  }
  void addDelivery(int64_t from, const std::vector<int64_t> &readers) {
    std::vector<int64_t> receivers = deliverTo(from, Staging::Out, readers);
    outs.take(from);
    if (!isMe(from))
      return;
    RemoteMove move = newMove();
    for (int64_t receiver : receivers)
      move.targets.push_back(rankOf(receiver));
    move.tagOut = chunkTag(stream, chunk, /*isResult=*/true);
    moves.outs.push_back(std::move(move));
  }

  /// A chunk of a sum of two ranks, for both: each sends its term and adds the
  /// other's. As many bytes travel as if each added a half, and there is no
  /// result to wait for.
  void addExchange() {
    int64_t other = 1 - group.index;
    RemoteMove term = newMove(), sum = newMove();
    term.targets = {rankOf(other)};
    term.tagOut = sum.tagIn = chunkTag(stream, chunk, /*isResult=*/false);
    moves.outs.push_back(std::move(term));
    sum.from = rankOf(other);
    sum.firstTerm = static_cast<size_t>(group.index);
    sum.lastTerm = sum.firstTerm + 1;
    sum.comesLast = other == 1;
    sum.isMine = true;
    sum.needsOut = moves.outs.size();
    ++moves.numCombined;
    moves.ins.push_back(std::move(sum));
  }

  /// A chunk of a sum, for `owner` or (-1) for all.
  void addReduction(int64_t owner) {
    if (owner < 0 && members == 2)
      return addExchange();
    std::vector<int64_t> readers;
    for (int64_t place = 0; place < members; ++place)
      if (owner < 0 || place == owner)
        readers.push_back(place);
    auto size = [&](size_t s) {
      return segments[s].second - segments[s].first;
    };
    // Either end may finish where the last segment is one rank.
    bool backwards =
        segments.size() == 2 && size(1) == 1 &&
        (owner < 0 ? chunk % 2 == 1 : machineOf(owner) == machineOf(0));
    std::vector<size_t> chain;
    for (size_t s = 0; s < segments.size(); ++s)
      chain.push_back(backwards ? segments.size() - 1 - s : s);
    auto handlerOf = [&](size_t step) {
      auto [begin, end] = segments[chain[step]];
      if (step + 1 == chain.size() && owner >= 0 &&
          machineOf(owner) == machineOf(begin))
        return owner;
      return begin + static_cast<int64_t>(chunk) % (end - begin);
    };
    Fold::Kind comes = size(chain[0]) == 1 ? Fold::Term : Fold::Partial;
    for (size_t step = 0; step < chain.size(); ++step) {
      int64_t handler = handlerOf(step);
      bool isLast = step + 1 == chain.size();
      if (step == 0)
        outs.take(handler);
      else
        ins.take(handler);
      uint64_t ordinal = step == 0 ? 0 : combined.take(handler);
      RemoteMove move;
      std::vector<int64_t> local;
      if (isLast) {
        local = onMachine(machineOf(handler), readers, handler);
        if (!isMe(handler) &&
            std::find(local.begin(), local.end(), group.index) != local.end()) {
          isKept = true;
          moves.locals.push_back(
              {first, last, rankOf(handler), Staging::Combined, ordinal});
        }
      }
      if (!isMe(handler)) {
        if (isLast)
          deliverTo(handler, Staging::Combined, readers);
        continue;
      }
      move = newMove();
      if (step > 0 || comes == Fold::Partial) {
        move.firstTerm = static_cast<size_t>(segments[chain[step]].first);
        move.lastTerm = static_cast<size_t>(segments[chain[step]].second);
      }
      move.isLast = isLast;
      if (step > 0) {
        move.from = rankOf(handlerOf(step - 1));
        move.fromRing = step == 1 ? Staging::Out : Staging::Combined;
        move.tagIn = chunkTag(stream, chunk, /*isResult=*/false);
        move.comes = step == 1 ? comes : Fold::Partial;
        move.comesLast = backwards;
      }
      move.tagOut = chunkTag(stream, chunk, isLast);
      if (!isLast) {
        move.targets = {rankOf(handlerOf(step + 1))};
      } else {
        move.isMine = owner < 0 || isMe(owner);
        move.readers = static_cast<uint32_t>(local.size());
      }
      if (step == 0) {
        moves.outs.push_back(std::move(move));
        continue;
      }
      ++moves.numCombined;
      size_t at = moves.ins.size();
      moves.ins.push_back(std::move(move));
      if (isLast)
        for (int64_t receiver : deliverTo(handler, Staging::Combined, readers))
          moves.ins[at].targets.push_back(rankOf(receiver));
    }
  }

  const Transfers &all;
  const Group &group;
  size_t stream;
  HostRank &self;
  int64_t members;
  std::vector<std::pair<int64_t, int64_t>> segments; ///< Of places.
  std::vector<int64_t> machines;
  Counters outs, combined, ins;
  RemoteMoves moves;
  // The chunk at hand.
  size_t first = 0, last = 0;
  uint64_t chunk = 0, bytes[2] = {};
  bool isKept = false;
};

class RemoteCollective : public HostTask {
public:
  RemoteCollective(std::unique_ptr<Transfers> given, RemoteMover &&made,
                   HostRank &self)
      : all(std::move(given)), mover(std::move(made)), self(self) {}

  Status run(const Address *views, int64_t) override {
    std::vector<Transfer> &transfers = all->all;
    for (size_t t = 0; t < transfers.size(); ++t) {
      ACCEL_RT_RETURN_IF_ERROR(transfers[t].input.fetch(views[t]));
      mover.inputs[t] = transfers[t].input.find(views[t]);
      mover.outputs[t] = transfers[t].output.find(views[transfers.size() + t]);
    }
    mover.start();
    ACCEL_RT_RETURN_IF_ERROR(wait());
    ACCEL_RT_RETURN_IF_ERROR(mover.run());
    for (size_t t = 0; t < transfers.size(); ++t)
      ACCEL_RT_RETURN_IF_ERROR(
          transfers[t].output.store(views[transfers.size() + t]));
    ACCEL_RT_RETURN_IF_ERROR(wait());
    mover.end();
    return Status();
  }

private:
  Status wait() {
    self.control.self().progress.fetch_add(1);
    return waitAtBarrier(*all->group.barrier,
                         static_cast<uint32_t>(all->group.here.size()),
                         self.spin, self.control);
  }

  std::unique_ptr<Transfers> all;
  RemoteMover mover;
  HostRank &self;
};

} // namespace

Status prepareRemoteCollective(std::unique_ptr<Transfers> transfers,
                               const std::string &streamName, HostRank &self,
                               std::unique_ptr<HostTask> &task) {
  size_t stream = wireOf(self, streamName);
  RemoteMoves moves = Builder(*transfers, stream, self).build();
  for (const auto *list : {&moves.outs, &moves.ins})
    for (const RemoteMove &move : *list)
      if (move.targets.size() > kMostTargets)
        return Status::error(
            "expected a collective on at most " +
            std::to_string(kMostTargets + 1) +
            " machines, found one on more: give each more ranks");
  std::vector<RemoteMover::View> views;
  for (const Transfer &transfer : transfers->all)
    views.push_back({transfer.dtype, transfer.bytes, transfer.pack,
                     transfer.unpack, transfer.layout});
  RemoteMover mover(std::move(moves), std::move(views), transfers->combine,
                    stream, *self.carriers[stream], self);
  ACCEL_RT_RETURN_IF_ERROR(mover.connect());
  const Group &group = transfers->group;
  for (size_t t = 0; t < transfers->all.size(); ++t)
    mover.toTerm[t] = transfers->all[t].toInput;
  mover.termOf.assign(static_cast<size_t>(self.memory.numRanks()), -1);
  for (size_t place = 0; place < group.ranks.size(); ++place)
    mover.termOf[static_cast<size_t>(group.ranks[place])] =
        static_cast<int64_t>(place);
  for (int64_t place : group.here)
    if (place != group.index)
      mover.neighbours.push_back(group.ranks[static_cast<size_t>(place)]);
  task = std::make_unique<RemoteCollective>(std::move(transfers),
                                            std::move(mover), self);
  return Status();
}

} // namespace accel::rt
