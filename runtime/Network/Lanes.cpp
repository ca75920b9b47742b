// Every process listens before it forks its rank. A machine's leader tries each
// address of each other machine, with a greeting that names the run: which of
// them came is what the others tell. So no address is believed that leads
// elsewhere (127.0.0.1 leads to whoever asks).

#include "Network/Lanes.h"

#include "Base/SystemError.h"

#include <algorithm>
#include <arpa/inet.h>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <dirent.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sstream>
#include <sys/socket.h>
#include <unistd.h>

namespace accel::rt {
namespace {

/// How long an address may take to answer, and a greeting to come.
constexpr int kMilliseconds = 1000;
/// Connections that may wait to be asked for.
constexpr int kMostWaiting = 4096;

sockaddr_in placeOf(uint32_t address, uint16_t port) {
  sockaddr_in place = {};
  place.sin_family = AF_INET;
  place.sin_addr.s_addr = address;
  place.sin_port = port;
  return place;
}

bool isEmptyFolder(const char *path) {
  DIR *folder = opendir(path);
  int entries = 0;
  while (folder && readdir(folder))
    ++entries;
  if (folder)
    closedir(folder);
  return entries <= 2; // '.' and '..'
}

/// Whether the user chose networks for MPI, and this is none of them.
bool isLeftOut(const ifaddrs &one, uint32_t address) {
  const char *chosen = std::getenv("OMPI_MCA_btl_tcp_if_include");
  if (!chosen || !*chosen)
    return false;
  std::istringstream list(chosen);
  for (std::string word; std::getline(list, word, ',');) {
    size_t slash = word.find('/');
    in_addr subnet;
    if (slash == std::string::npos) {
      if (word == one.ifa_name)
        return false;
    } else if (inet_pton(AF_INET, word.substr(0, slash).c_str(), &subnet) ==
               1) {
      int bits = std::atoi(word.c_str() + slash + 1);
      uint32_t mask = bits <= 0 ? 0 : htonl(~uint32_t(0) << (32 - bits));
      if ((subnet.s_addr & mask) == (address & mask))
        return false;
    }
  }
  return true;
}

/// The addresses that others may reach this machine by; loopback last.
std::vector<uint32_t> addressesHere() {
  std::vector<uint32_t> found, loops;
  ifaddrs *all = nullptr;
  if (getifaddrs(&all) != 0)
    return found;
  for (ifaddrs *one = all; one; one = one->ifa_next) {
    if (!one->ifa_addr || one->ifa_addr->sa_family != AF_INET ||
        !(one->ifa_flags & IFF_UP))
      continue;
    uint32_t address =
        reinterpret_cast<sockaddr_in *>(one->ifa_addr)->sin_addr.s_addr;
    if (one->ifa_flags & IFF_LOOPBACK)
      loops.push_back(address);
    else if (!isLeftOut(*one, address))
      found.push_back(address);
  }
  freeifaddrs(all);
  found.insert(found.end(), loops.begin(), loops.end());
  return found;
}

std::vector<std::string> wordsOf(const std::string &text) {
  std::istringstream stream(text);
  std::vector<std::string> words;
  for (std::string word; stream >> word;)
    words.push_back(word);
  return words;
}

/// Connects within the time; -1: it did not.
int connectTo(uint32_t address, uint16_t port, int milliseconds) {
  int made = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (made < 0)
    return -1;
  sockaddr_in place = placeOf(address, port);
  int error = 0;
  if (connect(made, reinterpret_cast<sockaddr *>(&place), sizeof place) != 0) {
    error = errno;
    if (error == EINPROGRESS) {
      pollfd wanted{made, POLLOUT, 0};
      socklen_t size = sizeof error;
      error = ETIMEDOUT;
      if (poll(&wanted, 1, milliseconds) == 1)
        getsockopt(made, SOL_SOCKET, SO_ERROR, &error, &size);
    }
  }
  if (error) {
    close(made);
    errno = error;
    return -1;
  }
  int one = 1;
  setsockopt(made, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  return made;
}

} // namespace

Lanes::~Lanes() {
  if (door >= 0)
    close(door);
  for (const Waiting &one : waiting)
    close(one.socket);
}

Status Lanes::listenHere() {
  door = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  sockaddr_in place = placeOf(htonl(INADDR_ANY), 0);
  if (door < 0 ||
      bind(door, reinterpret_cast<sockaddr *>(&place), sizeof place) != 0 ||
      listen(door, kMostWaiting) != 0)
    return Status::error("cannot listen for other machines: " +
                         systemError(errno));
  waiting.reserve(kMostWaiting);
  return Status();
}

void Lanes::acceptAll() {
  while (waiting.size() < kMostWaiting) {
    int came = accept4(door, nullptr, nullptr, SOCK_CLOEXEC);
    if (came < 0)
      return;
    // It is sent with the connection; who says nothing is no rank.
    timeval patience{kMilliseconds / 1000, 0};
    setsockopt(came, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    Hello hello;
    if (recv(came, &hello, sizeof hello, MSG_WAITALL) != sizeof hello ||
        hello.run != run)
      close(came);
    else
      waiting.push_back({hello, came});
  }
}

Status Lanes::open(int64_t to, uint32_t number, int &socket) {
  size_t at = static_cast<size_t>(to);
  socket = connectTo(addressOf[at], portOf[at], 5 * kMilliseconds);
  Hello hello{run, self, number, 0};
  if (socket < 0 ||
      send(socket, &hello, sizeof hello, MSG_NOSIGNAL) != sizeof hello)
    return Status::error("cannot connect to rank " + std::to_string(to) + ": " +
                         systemError(errno) +
                         "; with ACCEL_MESSAGES=mpi in the environment all "
                         "goes by MPI");
  return Status();
}

int Lanes::take(int64_t from, uint32_t number) {
  std::lock_guard<std::mutex> lock(mutex);
  acceptAll();
  for (Waiting &one : waiting)
    if (one.hello.from == from && one.hello.number == number) {
      int found = one.socket;
      one = waiting.back();
      waiting.pop_back();
      return found;
    }
  return -1;
}

/// Finds out by which address each machine reaches each other; says which does
/// not. Called by all.
std::string Lanes::findMissing(Machines &machines, Status &status) {
  std::string mine = "none";
  sockaddr_in place;
  socklen_t size = sizeof place;
  if (door >= 0 &&
      getsockname(door, reinterpret_cast<sockaddr *>(&place), &size) == 0) {
    mine = std::to_string(place.sin_port);
    for (uint32_t address : addressesHere())
      mine += " " + std::to_string(address);
  }
  std::vector<std::string> all;
  if (status = machines.exchange(mine, all); !status.ok())
    return "";
  size_t ranks = all.size(),
         count = static_cast<size_t>(machines.numMachines());
  std::vector<std::vector<std::string>> words;
  for (size_t rank = 0; rank < ranks; ++rank) {
    words.push_back(wordsOf(all[rank]));
    if (words.back().size() < 2)
      return "machine " +
             inQuotes(machines.hostOf(static_cast<int64_t>(rank))) +
             " has no address of IPv4";
    portOf.push_back(static_cast<uint16_t>(std::stoul(words.back()[0])));
  }
  auto leaderOf = [&](size_t machine) {
    return static_cast<size_t>(
        machines.ranksOf(static_cast<int64_t>(machine))[0]);
  };
  auto addressAt = [&](size_t machine, size_t i) {
    return static_cast<uint32_t>(std::stoul(words[leaderOf(machine)][i]));
  };
  size_t here = static_cast<size_t>(machines.here());
  std::vector<int> tried;
  for (size_t other = 0; other < count && machines.leads(); ++other)
    for (size_t i = 1; other != here && i < words[leaderOf(other)].size();
         ++i) {
      int made = connectTo(addressAt(other, i), portOf[leaderOf(other)],
                           kMilliseconds);
      Hello hello{run, self, static_cast<uint32_t>(i), 0};
      if (made >= 0 &&
          send(made, &hello, sizeof hello, MSG_NOSIGNAL) == sizeof hello)
        tried.push_back(made);
      else if (made >= 0)
        close(made);
    }
  if (status = machines.agree(Status()); !status.ok())
    return "";
  // All have been sent; the last packets may be on their way.
  auto isHeard = [&](size_t machine) {
    return machine == here ||
           std::any_of(waiting.begin(), waiting.end(), [&](const Waiting &one) {
             return one.hello.from == static_cast<int64_t>(leaderOf(machine));
           });
  };
  for (int look = 0; look < 100; ++look) {
    acceptAll();
    bool isWhole = true;
    for (size_t other = 0; other < count; ++other)
      isWhole &= isHeard(other);
    if (isWhole || !machines.leads())
      break;
    usleep(2000);
  }
  std::string came;
  for (const Waiting &one : waiting) {
    came += std::to_string(one.hello.from) + " " +
            std::to_string(one.hello.number) + " ";
    close(one.socket);
  }
  waiting.clear();
  for (int made : tried)
    close(made);
  if (status = machines.exchange(came, all); !status.ok())
    return "";
  // From each machine to each: the first of its addresses that was heard at.
  std::vector<size_t> chosen(count * count);
  for (size_t to = 0; to < count; ++to) {
    std::vector<std::string> pairs = wordsOf(all[leaderOf(to)]);
    for (size_t i = 0; i + 1 < pairs.size(); i += 2) {
      size_t from = static_cast<size_t>(
          machines.machineOf(static_cast<int64_t>(std::stoul(pairs[i]))));
      size_t &best = chosen[from * count + to],
             found = std::stoul(pairs[i + 1]);
      best = best ? std::min(best, found) : found;
    }
  }
  for (size_t from = 0; from < count; ++from)
    for (size_t to = 0; to < count; ++to)
      if (from != to && !chosen[from * count + to])
        return "machine " +
               inQuotes(machines.hostOf(static_cast<int64_t>(leaderOf(from)))) +
               " does not reach " +
               inQuotes(machines.hostOf(static_cast<int64_t>(leaderOf(to)))) +
               " by TCP on a free port";
  for (size_t rank = 0; rank < ranks; ++rank) {
    size_t to =
        static_cast<size_t>(machines.machineOf(static_cast<int64_t>(rank)));
    addressOf.push_back(to == here ? 0
                                   : addressAt(to, chosen[here * count + to]));
  }
  return "";
}

Status Lanes::join(Machines &machines, uint64_t run,
                   std::unique_ptr<Lanes> &lanes, std::string &why) {
  if (machines.numMachines() == 1)
    return Status();
  const char *wish = std::getenv("ACCEL_MESSAGES");
  std::string wanted = wish ? wish : "";
  Status own;
  if (!wanted.empty() && wanted != "mpi" && wanted != "sockets")
    own = Status::error("expected mpi or sockets for ACCEL_MESSAGES, found " +
                        inQuotes(wanted));
  ACCEL_RT_RETURN_IF_ERROR(machines.agree(own));
  bool hasBetter = wanted.empty() && (!isEmptyFolder("/sys/class/infiniband") ||
                                      !isEmptyFolder("/sys/class/cxi"));
  std::vector<std::string> all;
  ACCEL_RT_RETURN_IF_ERROR(machines.exchange(
      wanted == "mpi" ? "ACCEL_MESSAGES=mpi asks for it"
      : hasBetter ? "machine " + inQuotes(machines.hostOf(machines.rank())) +
                        " has a network of its own kind"
                  : "",
      all));
  for (const std::string &reason : all)
    if (why.empty())
      why = reason;
  if (!why.empty())
    return Status();
  auto made = std::make_unique<Lanes>();
  made->run = run;
  made->self = machines.rank();
  (void)made->listenHere(); // without it, the others hear of no address
  Status status;
  why = made->findMissing(machines, status);
  ACCEL_RT_RETURN_IF_ERROR(status);
  if (why.empty())
    lanes = std::move(made);
  return Status();
}

} // namespace accel::rt
