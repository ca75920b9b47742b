// Texts travel to rank 0 and from there to all. Memory is a file without a name
// that the leader of a machine has open, and the others open by its process.

#include "Network/Machines.h"

#include "Base/SystemError.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <fcntl.h>
#include <map>
#include <sys/mman.h>
#include <thread>
#include <unistd.h>

namespace accel::rt {
namespace {

/// Before the service has its own.
constexpr int64_t kLengthTag = 1, kTextTag = 2;

} // namespace

Status Machines::wait(Network::Request request, Network::Arrival *arrival) {
  for (int look = 0;; ++look) {
    bool done = false;
    ACCEL_RT_RETURN_IF_ERROR(network->test(request, done, arrival));
    if (done)
      return Status();
    if (look > 100)
      std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
}

Status Machines::sendText(int64_t to, const std::string &text) {
  uint64_t length = text.size();
  Network::Request request;
  ACCEL_RT_RETURN_IF_ERROR(
      network->send(to, kLengthTag, &length, sizeof length, request));
  ACCEL_RT_RETURN_IF_ERROR(wait(request));
  ACCEL_RT_RETURN_IF_ERROR(
      network->send(to, kTextTag, text.data(), text.size(), request));
  return wait(request);
}

Status Machines::receiveText(int64_t from, std::string &text) {
  uint64_t length = 0;
  Network::Request request;
  ACCEL_RT_RETURN_IF_ERROR(
      network->receive(from, kLengthTag, &length, sizeof length, request));
  ACCEL_RT_RETURN_IF_ERROR(wait(request));
  if (length > (uint64_t(1) << 30))
    return Status::error("expected a short text of rank " +
                         std::to_string(from) + ", found " +
                         std::to_string(length) + " bytes");
  text.assign(length, '\0');
  ACCEL_RT_RETURN_IF_ERROR(
      network->receive(from, kTextTag, text.data(), length, request));
  return wait(request);
}

Status Machines::exchange(const std::string &mine,
                          std::vector<std::string> &all) {
  int64_t ranks = numRanks();
  all.assign(static_cast<size_t>(ranks), std::string());
  if (rank() != 0) {
    ACCEL_RT_RETURN_IF_ERROR(sendText(0, mine));
    for (std::string &text : all)
      ACCEL_RT_RETURN_IF_ERROR(receiveText(0, text));
    return Status();
  }
  all[0] = mine;
  for (int64_t other = 1; other < ranks; ++other)
    ACCEL_RT_RETURN_IF_ERROR(
        receiveText(other, all[static_cast<size_t>(other)]));
  for (int64_t other = 1; other < ranks; ++other)
    for (const std::string &text : all)
      ACCEL_RT_RETURN_IF_ERROR(sendText(other, text));
  return Status();
}

Status Machines::join(std::unique_ptr<Network> network,
                      const ProcessPlace &here,
                      std::unique_ptr<Machines> &machines) {
  auto made = std::make_unique<Machines>();
  made->network = std::move(network);
  std::vector<std::string> keys, cores;
  ACCEL_RT_RETURN_IF_ERROR(made->exchange(here.machine, keys));
  ACCEL_RT_RETURN_IF_ERROR(made->exchange(here.host, made->hosts));
  ACCEL_RT_RETURN_IF_ERROR(made->exchange(here.cores, cores));
  std::map<std::string, int64_t> numbered;
  for (int64_t rank = 0; rank < made->numRanks(); ++rank) {
    auto [found, isNew] =
        numbered.emplace(keys[static_cast<size_t>(rank)], made->numMachines());
    if (isNew)
      made->members.emplace_back();
    made->members[static_cast<size_t>(found->second)].push_back(rank);
    made->numbers.push_back(found->second);
  }
  std::string any;
  for (int64_t rank : made->ranksOf(made->here())) {
    const std::string &bits = cores[static_cast<size_t>(rank)];
    any.resize(std::max(any.size(), bits.size()));
    for (size_t i = 0; i < bits.size(); ++i)
      any[i] = static_cast<char>(any[i] | bits[i]);
  }
  made->cores = countCores(any);
  machines = std::move(made);
  return Status();
}

std::string Machines::describe() const {
  std::string text = std::to_string(numRanks()) +
                     (numRanks() == 1 ? " rank" : " ranks") + " on " +
                     std::to_string(numMachines()) +
                     (numMachines() == 1 ? " machine (" : " machines (");
  for (int64_t machine = 0; machine < numMachines(); ++machine) {
    text += machine ? "; " : "";
    const char *mark = ": ";
    text += hostOf(ranksOf(machine)[0]);
    for (int64_t rank : ranksOf(machine)) {
      text += mark + std::to_string(rank);
      mark = ", ";
    }
  }
  return text + ")";
}

Status Machines::agree(const Status &own) {
  std::vector<std::string> all;
  ACCEL_RT_RETURN_IF_ERROR(exchange(own.ok() ? "" : "!" + own.message(), all));
  for (int64_t rank = 0; rank < numRanks(); ++rank) {
    const std::string &text = all[static_cast<size_t>(rank)];
    if (!text.empty())
      return Status::error(
          (numMachines() > 1 ? "rank " + std::to_string(rank) + " on machine " +
                                   inQuotes(hostOf(rank)) + ": "
                             : "") +
          text.substr(1));
  }
  return Status();
}

Status Machines::share(uint64_t bytes, void *&mapping) {
  mapping = nullptr;
  int file = -1;
  auto fail = [&](const std::string &what) {
    return Status::error(what + ": " + systemError(errno));
  };
  Status status;
  if (leads()) {
    file = memfd_create("acc-run", MFD_CLOEXEC);
    if (file < 0 || ftruncate(file, static_cast<off_t>(bytes)) != 0)
      status = fail("cannot make " + std::to_string(bytes) +
                    " bytes that the ranks of a machine share");
  }
  ACCEL_RT_RETURN_IF_ERROR(agree(status));
  std::vector<std::string> paths;
  ACCEL_RT_RETURN_IF_ERROR(exchange("/proc/" + std::to_string(getpid()) +
                                        "/fd/" + std::to_string(file),
                                    paths));
  if (!leads()) {
    const std::string &path = paths[static_cast<size_t>(ranksOf(here())[0])];
    file = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
    if (file < 0)
      status = fail("cannot open the memory of rank " +
                    std::to_string(ranksOf(here())[0]) + " of this machine, " +
                    inQuotes(path) +
                    " (processes of one machine must be of one user)");
  }
  if (status.ok()) {
    void *room = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_NORESERVE, file, 0);
    if (room == MAP_FAILED)
      status = fail("cannot map " + std::to_string(bytes) +
                    " bytes that the ranks share");
    else
      mapping = room;
  }
  // The leader keeps the file until everybody has it.
  Status all = agree(status);
  if (file >= 0)
    close(file);
  return all;
}

} // namespace accel::rt
