// Groups, views that the host reaches, and the vtable of host communication.

#include "Comm/HostComm.h"

#include "Base/Populate.h"
#include "Comm/Transfer.h"
#include "Format/Views.h"

namespace accel::rt {
namespace {
/// Where no memory is mapped.
constexpr uint64_t kNowhere = uint64_t(1) << 43;
} // namespace

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
  for (int64_t place = 0; place < static_cast<int64_t>(ranks.size()); ++place)
    if (self.memory.isHere(ranks[static_cast<size_t>(place)]))
      here.push_back(place);
  isSpread = here.size() < ranks.size();
  barrier = &self.memory.barrier(self.memory.channel({axes, stream}), lowest);
}

HostView::HostView(const View &view, bool isShared, const HostRank &self)
    : self(self), layout(view.shape, view.strides, view.strides),
      bytes(dtypeBytes(view.dtype)), isShared(isShared) {
  if (!isShared && self.moves && !self.isReached(view))
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
           ControlPlane &control, bool moves, Memory &device, Word *keeperBell,
           Lanes *lanes)
      : self{memory,
             pool,
             Coordinates::of(executable.mesh, control.rank()),
             control.rank(),
             moves,
             device,
             control,
             pool.spinLimit()} {
    for (size_t stream = 0; stream < memory.streams().size(); ++stream) {
      int64_t rank = control.rank();
      self.mailCarriers.push_back(
          makeWireCarrier(memory, rank, stream, *keeperBell));
      self.carriers.push_back(
          lanes ? makeLaneCarrier(memory, rank, stream, *lanes)
                : makeWireCarrier(memory, rank, stream, *keeperBell));
    }
  }

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
        populate(shared, bytes, &self.control.self().bytesPopulated));
    ACCEL_RT_RETURN_IF_ERROR(self.device.share(shared, bytes, self.sharedAt));
    address = self.sharedAt;
    return Status();
  }

  Status prepare(const Program &program, const Command &command,
                 Work &work) override {
    size_t next = 0;
    self.reached.clear();
    format::forEachView(command, [&](const View &view) {
      if (self.device.isHostMemory(work.places[next++].base))
        self.reached.push_back(view.buffer);
    });
    std::unique_ptr<HostTask> task;
    ACCEL_RT_RETURN_IF_ERROR(
        std::holds_alternative<CollectiveCommand>(command.what)
            ? prepareCollective(program, command, self, task)
            : prepareMail(program, command, self, task));
    work.kind = Work::Kind::Host;
    work.task = std::move(task);
    // What lies where the host does not reach is copied by the device.
    format::forEachView(command, [&](const View &view) {
      work.isCapturable &=
          isShared(program, view) || !self.moves || self.isReached(view);
    });
    return Status();
  }

private:
  HostRank self;
};

} // namespace

std::unique_ptr<Comm> makeHostComm(HostMemory &memory, ThreadPool &pool,
                                   const Executable &executable,
                                   ControlPlane &control, bool moves,
                                   Memory &device, Word *keeperBell,
                                   Lanes *lanes) {
  return std::make_unique<HostComm>(memory, pool, executable, control, moves,
                                    device, keeperBell, lanes);
}

} // namespace accel::rt
