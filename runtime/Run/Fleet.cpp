// Coming together, comparing, and leaving.

#include "Run/Fleet.h"

#include "Base/SystemError.h"
#include "Network/MpiNetwork.h"
#include "Network/Secret.h"

#include <cerrno>
#include <sys/stat.h>
#include <unistd.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

namespace accel::rt {

Fleet::Fleet(std::unique_ptr<Machines> all)
    : machines(std::move(all)), kept(std::make_unique<Keeper>(*machines)) {}

Status Fleet::join(const RunOptions &options, std::unique_ptr<Fleet> &fleet) {
  if (!options.comm.empty() && options.comm != "host" && options.comm != "mpi")
    return Status::error("expected host or mpi for --comm, found " +
                         inQuotes(options.comm));
  std::unique_ptr<Network> network;
  ProcessPlace here = placeOfThisProcess();
  if (options.ownNetwork)
    ACCEL_RT_RETURN_IF_ERROR(options.ownNetwork(network, here.host));
  else if (options.comm == "mpi")
    ACCEL_RT_RETURN_IF_ERROR(joinMpi(network));
  else
    return Status();
  if (options.ownNetwork) // several machines of a test in one
    here.machine += here.host;
  std::unique_ptr<Machines> machines;
  ACCEL_RT_RETURN_IF_ERROR(Machines::join(std::move(network), here, machines));
  fleet = std::make_unique<Fleet>(std::move(machines));
  // Names of files, which no other run has. Whoever lists the folder may know
  // them: nothing else is called so.
  uint32_t number = 0;
  std::vector<std::string> all;
  ACCEL_RT_RETURN_IF_ERROR(
      fleet->machines->agree(fillRandom(&number, sizeof number)));
  ACCEL_RT_RETURN_IF_ERROR(
      fleet->machines->exchange(std::to_string(number), all));
  fleet->suffix = ".part." + all[0];
  return Lanes::join(*fleet->machines, fleet->direct, fleet->whyNotDirect);
}

std::string Fleet::describeLanes() const {
  return direct ? "from rank to rank by TCP" : "by MPI: " + whyNotDirect;
}

/// Ends the run before it began. Leaving the network waits for rank 0, which
/// does so when it has said why: mpirun ends all processes with the first.
Status Fleet::leave(Status status) {
  if (status.ok() || isRefused)
    return status;
  isRefused = true;
  if (!leads())
    machines->net().finish();
  return status;
}

Status Fleet::agree(const Status &own) { return leave(machines->agree(own)); }

Status Fleet::compare(const Status &own, const Identity &identity) {
  ACCEL_RT_RETURN_IF_ERROR(agree(own));
  std::string mine;
  for (const auto &[name, value] : identity)
    mine += value + '\n';
  std::vector<std::string> all;
  ACCEL_RT_RETURN_IF_ERROR(machines->exchange(mine, all));
  auto split = [](const std::string &text) {
    std::vector<std::string> parts(1);
    for (char c : text)
      if (c == '\n')
        parts.emplace_back();
      else
        parts.back() += c;
    return parts;
  };
  std::vector<std::string> first = split(all[0]);
  for (int64_t rank = 1; rank < machines->numRanks(); ++rank) {
    std::vector<std::string> other = split(all[static_cast<size_t>(rank)]);
    for (size_t i = 0; i < identity.size(); ++i) {
      std::string a = i < first.size() ? first[i] : "",
                  b = i < other.size() ? other[i] : "";
      if (a != b)
        return leave(Status::error("expected the same " + identity[i].first +
                                   " on all machines, found " +
                                   (a.empty() ? "none" : a) + " on " +
                                   inQuotes(machines->hostOf(0)) +
                                   " (rank 0) and " + (b.empty() ? "none" : b) +
                                   " on " + inQuotes(machines->hostOf(rank)) +
                                   " (rank " + std::to_string(rank) + ")"));
    }
  }
  return Status();
}

void Fleet::finish(int code) {
  if (isRefused)
    machines->net().finish();
  else
    kept->finish(code);
}

Status hashFile(int fd, const std::string &path, std::string &hash) {
  struct stat info;
  if (fstat(fd, &info) != 0)
    return Status::error("cannot read " + inQuotes(path) + ": " +
                         systemError(errno));
  std::unique_ptr<XXH3_state_t, XXH_errorcode (*)(XXH3_state_t *)> state(
      XXH3_createState(), XXH3_freeState);
  XXH3_64bits_reset(state.get());
  std::vector<char> buffer(1 << 20);
  for (uint64_t done = 0, size = static_cast<uint64_t>(info.st_size);
       done < size;) {
    uint64_t count = std::min<uint64_t>(buffer.size(), size - done);
    ssize_t got = pread(fd, buffer.data(), count, static_cast<off_t>(done));
    if (got <= 0)
      return Status::error("cannot read " + inQuotes(path) + ": " +
                           (got ? systemError(errno) : "it ends early"));
    XXH3_64bits_update(state.get(), buffer.data(), static_cast<size_t>(got));
    done += static_cast<uint64_t>(got);
  }
  char text[24];
  std::snprintf(
      text, sizeof text, "%016llx",
      static_cast<unsigned long long>(XXH3_64bits_digest(state.get())));
  hash = text;
  return Status();
}

} // namespace accel::rt
