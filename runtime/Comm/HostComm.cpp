// Barriers, groups and the vtable of host communication.

#include "Comm/HostComm.h"

#include "Base/Populate.h"

namespace accel::rt {
namespace {
/// How long a wait sleeps before it looks for an abort.
constexpr int kSleepMilliseconds = 50;
/// Where no memory is mapped.
constexpr uint64_t kNowhere = uint64_t(1) << 43;
} // namespace

Status waitAtBarrier(BarrierCell &cell, uint32_t members, Control &control,
                     RankControl &self) {
  if (control.aborted())
    return Status::error(kAbortedMessage);
  self.barriers.fetch_add(1, std::memory_order_relaxed);
  uint32_t generation = cell.generation.load();
  if (cell.arrived.fetch_add(1) + 1 == members) {
    cell.arrived.store(0);
    cell.generation.store(generation + 1);
    wakeWaiters(cell.generation);
    return Status();
  }
  for (uint32_t look = 0; cell.generation.load() == generation; ++look) {
    if (look < control.spin) {
      pauseCore();
      continue;
    }
    if (control.aborted())
      return Status::error(kAbortedMessage);
    self.waiting.store(true, std::memory_order_relaxed);
    waitWhile(cell.generation, generation, kSleepMilliseconds);
  }
  self.waiting.store(false, std::memory_order_relaxed);
  return Status();
}

Group::Group(const HostRank &self, const std::vector<std::string> &axes,
             const std::string &stream) {
  const Coordinates &mine = self.coordinates;
  ranks.resize(static_cast<size_t>(mine.count(axes)));
  index = mine.index(axes);
  int64_t total = self.memory.numRanks(), lowest = self.rank;
  for (int64_t rank = 0; rank < total; ++rank) {
    Coordinates other = Coordinates::of(mine.axes, rank);
    bool member = true;
    for (size_t i = 0; i < mine.axes.size(); ++i)
      if (std::find(axes.begin(), axes.end(), mine.axes[i].name) == axes.end())
        member &= other.values[i] == mine.values[i];
    if (!member)
      continue;
    lowest = std::min(lowest, rank);
    ranks[static_cast<size_t>(other.index(axes))] = rank;
  }
  barrier = &self.memory.barrier(self.memory.channel({axes, stream}), lowest);
}

HostView::HostView(const View &view, bool isShared, const HostRank &self)
    : self(self), layout(view.shape, view.strides, view.strides),
      bytes(dtypeBytes(view.dtype)), isShared(isShared) {
  if (!isShared && self.moves && !self.device.isHostMemory())
    copy.resize(static_cast<size_t>(spanBytes(view)));
}

char *HostView::find(Address address) {
  if (isShared)
    return self.findShared(address);
  return copy.empty() ? self.device.find(address) : copy.data();
}

Status HostView::fetch(Address address) {
  Status status;
  if (!copy.empty())
    layout.forRange(
        0, layout.elements(),
        [&](int64_t at, int64_t, int64_t stride, int64_t, int64_t count) {
          if (status.ok())
            status = self.device.download(
                copy.data() + at * bytes, address + at * bytes,
                Rows::ofElements(bytes, count, stride, stride));
        });
  return status;
}

Status HostView::store(Address address) {
  Status status;
  if (!copy.empty())
    layout.forRange(
        0, layout.elements(),
        [&](int64_t at, int64_t, int64_t stride, int64_t, int64_t count) {
          if (status.ok())
            status = self.device.upload(
                address + at * bytes, copy.data() + at * bytes,
                Rows::ofElements(bytes, count, stride, stride));
        });
  return status;
}

namespace {

class HostComm : public Comm {
public:
  HostComm(HostMemory &memory, ThreadPool &pool, const Executable &executable,
           int64_t rank, bool moves, Memory &device)
      : self{memory, pool,  Coordinates::of(executable.mesh, rank),
             rank,   moves, device} {}

  int64_t rank() const override { return self.rank; }
  int64_t numRanks() const override { return self.memory.numRanks(); }

  Status allocate(const ArenaPlan &arena, Address &address) override {
    if (!self.moves) {
      address = {kNowhere};
      return Status();
    }
    if (static_cast<uint64_t>(arena.bytes) > self.memory.sharedBytes())
      return Status::error("expected a shared arena of at most " +
                           std::to_string(self.memory.sharedBytes()) +
                           " bytes, found " + std::to_string(arena.bytes));
    char *shared = self.memory.shared(self.rank);
    uint64_t bytes = static_cast<uint64_t>(arena.bytes);
    ACCEL_RT_RETURN_IF_ERROR(
        populate(shared, bytes, &self.memory.rank(self.rank).bytesPopulated));
    ACCEL_RT_RETURN_IF_ERROR(self.device.share(shared, bytes, self.sharedAt));
    address = self.sharedAt;
    return Status();
  }

  Status prepare(const Program &program, const Command &command,
                 std::unique_ptr<HostTask> &task) override {
    if (std::holds_alternative<CollectiveCommand>(command.what))
      return prepareCollective(program, command, self, task);
    return prepareMail(program, command, self, task);
  }

  Status barrier() override {
    return waitAtBarrier(self.memory.barrier(0, 0),
                         static_cast<uint32_t>(numRanks()),
                         self.memory.control(), self.memory.rank(self.rank));
  }

private:
  HostRank self;
};

} // namespace

std::unique_ptr<Comm> makeHostComm(HostMemory &memory, ThreadPool &pool,
                                   const Executable &executable, int64_t rank,
                                   bool moves, Memory &device) {
  return std::make_unique<HostComm>(memory, pool, executable, rank, moves,
                                    device);
}

} // namespace accel::rt
