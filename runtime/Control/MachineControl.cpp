// Laying it out, and the ranks' side.

#include "Control/MachineControl.h"

#include "Base/PageCursor.h"

#include <algorithm>
#include <new>
#include <sys/mman.h>

namespace accel::rt {
class MachineControl::Plane : public ControlPlane {
public:
  Plane(MachineControl &shared, int64_t number)
      : shared(shared), number(number) {}
  int64_t rank() const override { return number; }
  int64_t numRanks() const override { return shared.size.ranks; }
  RankControl &self() override { return shared.ranks[number]; }

  Status barrier() override {
    int64_t nothing = INT64_MIN;
    return agree(nothing);
  }

  Status agree(int64_t &value) override {
    if (isAborted())
      return Status::error(kAbortedMessage);
    Head &head = shared.head();
    RankControl &own = self();
    own.barriers.fetch_add(1, std::memory_order_relaxed);
    uint32_t mine = ++turn;
    std::atomic<int64_t> *votes = shared.votes + (mine % 2) * shared.size.ranks;
    votes[number].store(value);
    if (head.arrived.fetch_add(1) + 1 == shared.members) {
      head.arrived.store(0);
      int64_t greatest = INT64_MIN;
      for (int64_t rank : shared.here)
        greatest = std::max(greatest, votes[rank].load());
      head.came[mine % 2].store(greatest);
      head.here.store(mine);
      if (shared.isOnly)
        shared.open(mine, greatest);
      else
        shared.ring(shared.leader);
    }
    for (int look = 0;; ++look) {
      // Nobody can be two meetings ahead of a rank that waits.
      uint32_t seen = head.everywhere.load();
      if (static_cast<int32_t>(seen - mine) >= 0)
        break;
      if (look < shared.spin) {
        pauseCore();
        continue;
      }
      if (isAborted())
        return Status::error(kAbortedMessage);
      own.waiting.store(true, std::memory_order_relaxed);
      waitWhile(head.everywhere, seen, kSleepMilliseconds);
    }
    own.waiting.store(false, std::memory_order_relaxed);
    value = head.agreed[mine % 2].load();
    return Status();
  }

  void post(size_t word, uint64_t value) override {
    shared.board[word].store(value);
    if (shared.isOnly)
      return;
    uint64_t at = shared.head().logged.fetch_add(1);
    shared.log[at % shared.logRoom].store(word + 1);
  }
  uint64_t find(size_t word) const override {
    return shared.board[word].load();
  }
  void report(int64_t call, double seconds, const StepRecord &record) override {
    shared.seconds(number, call) = seconds;
    if (number == 0)
      shared.record(call) = record;
    shared.kept(number).reported.store(call + 1);
  }
  Counts &counts(size_t entry) override { return shared.counts(number, entry); }
  bool isStopWanted() const override { return shared.top->stopWanted; }
  void abort() override { shared.abort(); }
  bool isAborted() const override {
    return shared.top->abort.load(std::memory_order_relaxed) != 0;
  }
  void close() override {} // the keeper tells the rest

private:
  MachineControl &shared;
  int64_t number;
  uint32_t turn = 0;
};

MachineControl::~MachineControl() {
  if (mapping)
    munmap(mapping, mappedBytes);
}

std::unique_ptr<ControlPlane> MachineControl::makePlane(int64_t rank) {
  return std::make_unique<Plane>(*this, rank);
}

Status MachineControl::create(Machines &machines, const ControlSize &wanted,
                              int spinLooks) {
  size = wanted;
  spin = spinLooks;
  here = machines.ranksOf(machines.here());
  members = static_cast<int64_t>(here.size());
  leader = here[0];
  isOnly = machines.numMachines() == 1;
  uint64_t count = static_cast<uint64_t>(size.ranks),
           calls = static_cast<uint64_t>(size.calls);
  logRoom = 2 * size.words + 64;
  PageCursor cursor;
  uint64_t headAt = cursor.take(sizeof(Head));
  uint64_t ranksAt = cursor.take(count * sizeof(RankControl));
  uint64_t keptAt = cursor.take(count * sizeof(Kept));
  uint64_t timesAt = cursor.take(count * calls * sizeof(double));
  uint64_t recordsAt = cursor.take(calls * sizeof(StepRecord));
  uint64_t countsAt = cursor.take(count * size.entries * sizeof(Counts));
  uint64_t boardAt = cursor.take(size.words * sizeof(uint64_t));
  uint64_t logAt = cursor.take(logRoom * sizeof(uint64_t));
  uint64_t votesAt = cursor.take(2 * count * sizeof(int64_t));
  mappedBytes = cursor.bytes;
  ACCEL_RT_RETURN_IF_ERROR(machines.share(mappedBytes, mapping));
  // What starts as zeros is not touched: that would cost memory. The one value
  // that does not, interruptedAt, is made by the leader, before the ranks are.
  char *base = static_cast<char *>(mapping);
  top = reinterpret_cast<Head *>(base + headAt);
  ranks = reinterpret_cast<RankControl *>(base + ranksAt);
  keeping = reinterpret_cast<Kept *>(base + keptAt);
  if (machines.leads())
    for (uint64_t i = 0; i < count; ++i)
      new (&ranks[i]) RankControl;
  times = reinterpret_cast<double *>(base + timesAt);
  records = reinterpret_cast<StepRecord *>(base + recordsAt);
  entryCounts = reinterpret_cast<Counts *>(base + countsAt);
  board = reinterpret_cast<std::atomic<uint64_t> *>(base + boardAt);
  log = reinterpret_cast<std::atomic<uint64_t> *>(base + logAt);
  votes = reinterpret_cast<std::atomic<int64_t> *>(base + votesAt);
  return machines.agree(Status());
}

bool MachineControl::takePosted(size_t &number) {
  std::atomic<uint64_t> &next = log[taken % logRoom];
  uint64_t value = next.load();
  if (value == 0)
    return false;
  next.store(0);
  ++taken;
  number = static_cast<size_t>(value - 1);
  return true;
}

void MachineControl::open(uint32_t turn, int64_t value) {
  top->agreed[turn % 2].store(value);
  top->everywhere.store(turn);
  wakeWaiters(top->everywhere);
}

void MachineControl::ring(int64_t rank) {
  kept(rank).bell.fetch_add(1);
  wakeWaiters(kept(rank).bell);
}

void MachineControl::abort() {
  top->abort.store(1);
  for (int64_t rank : here)
    ring(rank);
}

} // namespace accel::rt
