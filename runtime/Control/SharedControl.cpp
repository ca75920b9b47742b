// Lays the shared memory out, and waits in it.

#include "Control/SharedControl.h"

#include "Base/PageCursor.h"
#include "Base/SystemError.h"
#include "Base/WaitSpan.h"

#include <algorithm>
#include <cerrno>
#include <new>
#include <sched.h>
#include <sys/mman.h>

namespace accel::rt {
namespace {

/// Looks at a barrier before whoever else is ready may have the core.
constexpr int kPauses = 64;

} // namespace

Status waitAtBarrier(BarrierCell &cell, uint32_t members, int spin,
                     ControlPlane &control) {
  if (control.isAborted())
    return Status::error(kAbortedMessage);
  RankControl &self = control.self();
  self.barriers.fetch_add(1, std::memory_order_relaxed);
  uint32_t generation = cell.generation.load();
  if (cell.arrived.fetch_add(1) + 1 == members) {
    cell.arrived.store(0);
    cell.generation.store(generation + 1);
    wakeWaiters(cell.generation);
    return Status();
  }
  WaitSpan span;
  for (int look = 0; cell.generation.load() == generation; ++look) {
    if (look < spin) {
      // Ranks of other machines, or programs, may have been given the core.
      if (look % kPauses == kPauses - 1)
        sched_yield();
      else
        pauseCore();
      continue;
    }
    if (control.isAborted())
      return Status::error(kAbortedMessage);
    self.waiting.store(true, std::memory_order_relaxed);
    waitWhile(cell.generation, generation, kSleepMilliseconds);
  }
  self.waiting.store(false, std::memory_order_relaxed);
  return Status();
}

class SharedControl::Plane : public ControlPlane {
public:
  Plane(SharedControl &shared, int64_t number)
      : shared(shared), number(number) {}
  int64_t rank() const override { return number; }
  int64_t numRanks() const override { return shared.size.ranks; }
  RankControl &self() override { return shared.ranks[number]; }

  Status barrier() override {
    return waitAtBarrier(shared.head->barrier,
                         static_cast<uint32_t>(numRanks()), shared.spin, *this);
  }
  Status agree(int64_t &value) override {
    std::atomic<int64_t> *votes = shared.votes + (turn++ % 2) * numRanks();
    votes[number].store(value);
    ACCEL_RT_RETURN_IF_ERROR(barrier());
    for (int64_t rank = 0; rank < numRanks(); ++rank)
      value = std::max(value, votes[rank].load());
    return Status();
  }

  void post(size_t word, uint64_t value) override {
    shared.board[word].store(value);
  }
  uint64_t find(size_t word) const override {
    return shared.board[word].load();
  }
  void report(int64_t call, double seconds, const StepRecord &record) override {
    shared.times[number * shared.size.calls + call] = seconds;
    if (number == 0)
      shared.records[call] = record;
  }
  Counts &counts(size_t entry) override {
    return shared
        .entryCounts[static_cast<size_t>(number) * shared.size.entries + entry];
  }
  bool isStopWanted() const override { return shared.head->stopWanted; }
  void abort() override { shared.head->abort.store(1); }
  bool isAborted() const override {
    return shared.head->abort.load(std::memory_order_relaxed) != 0;
  }
  void close() override {} // it is all there

private:
  SharedControl &shared;
  int64_t number;
  uint32_t turn = 0;
};

SharedControl::~SharedControl() {
  if (mapping)
    munmap(mapping, mappedBytes);
}

std::unique_ptr<ControlPlane> SharedControl::makePlane(int64_t rank) {
  return std::make_unique<Plane>(*this, rank);
}

Status SharedControl::create(const ControlSize &wanted, int spinLooks) {
  resize(wanted);
  spin = spinLooks;
  uint64_t count = static_cast<uint64_t>(size.ranks),
           calls = static_cast<uint64_t>(size.calls);
  PageCursor cursor;
  uint64_t headAt = cursor.take(sizeof(Head));
  uint64_t ranksAt = cursor.take(count * sizeof(RankControl));
  uint64_t timesAt = cursor.take(count * calls * sizeof(double));
  uint64_t recordsAt = cursor.take(calls * sizeof(StepRecord));
  uint64_t countsAt = cursor.take(count * size.entries * sizeof(Counts));
  uint64_t boardAt = cursor.take(size.words * sizeof(uint64_t));
  uint64_t votesAt = cursor.take(2 * count * sizeof(int64_t));
  mappedBytes = cursor.bytes;
  mapping = mmap(nullptr, mappedBytes, PROT_READ | PROT_WRITE,
                 MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapping == MAP_FAILED) {
    mapping = nullptr;
    return Status::error("cannot map " + std::to_string(mappedBytes) +
                         " bytes that the ranks share: " + systemError(errno));
  }
  // What starts as zeros is not touched: that would cost memory.
  char *base = static_cast<char *>(mapping);
  head = new (base + headAt) Head;
  ranks = reinterpret_cast<RankControl *>(base + ranksAt);
  for (uint64_t i = 0; i < count; ++i)
    new (&ranks[i]) RankControl;
  times = reinterpret_cast<double *>(base + timesAt);
  records = reinterpret_cast<StepRecord *>(base + recordsAt);
  entryCounts = reinterpret_cast<Counts *>(base + countsAt);
  board = reinterpret_cast<std::atomic<uint64_t> *>(base + boardAt);
  votes = reinterpret_cast<std::atomic<int64_t> *>(base + votesAt);
  return Status();
}

} // namespace accel::rt
