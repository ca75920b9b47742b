// The system's calls for them.

#include "Network/Socket.h"

#include <arpa/inet.h>
#include <cerrno>
#include <cstdlib>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sstream>
#include <sys/socket.h>
#include <unistd.h>

namespace accel::rt {
namespace {

sockaddr_in placeOf(const Endpoint &end) {
  sockaddr_in place = {};
  place.sin_family = AF_INET;
  place.sin_addr.s_addr = end.address;
  place.sin_port = end.port;
  return place;
}

using Ask = int (*)(int, sockaddr *, socklen_t *);

bool ask(Ask call, int socket, Endpoint &end) {
  sockaddr_in place = {};
  socklen_t size = sizeof place;
  if (call(socket, reinterpret_cast<sockaddr *>(&place), &size) != 0 ||
      place.sin_family != AF_INET)
    return false;
  end = {place.sin_addr.s_addr, place.sin_port};
  return true;
}

bool isListed(const std::string &network, uint32_t address,
              const std::string &text) {
  std::istringstream list(text);
  for (std::string word; std::getline(list, word, ',');) {
    size_t slash = word.find('/');
    in_addr subnet;
    if (slash == std::string::npos) {
      if (word == network)
        return true;
    } else if (inet_pton(AF_INET, word.substr(0, slash).c_str(), &subnet) ==
               1) {
      int bits = std::atoi(word.c_str() + slash + 1);
      uint32_t mask = bits <= 0    ? 0
                      : bits >= 32 ? ~uint32_t(0)
                                   : htonl(~uint32_t(0) << (32 - bits));
      if ((subnet.s_addr & mask) == (address & mask))
        return true;
    }
  }
  return false;
}

std::string fromEnvironment(const char *name) {
  const char *value = std::getenv(name);
  return value ? value : "";
}

} // namespace

Socket::~Socket() {
  if (number >= 0)
    close(number);
}

bool findEndpoints(const Socket &socket, Endpoint &here, Endpoint &there) {
  return ask(getsockname, socket.get(), here) &&
         ask(getpeername, socket.get(), there);
}

Socket takePort(uint32_t address, Endpoint &here) {
  Socket made(socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  sockaddr_in place = placeOf({address, 0});
  if (!made ||
      bind(made.get(), reinterpret_cast<sockaddr *>(&place), sizeof place) !=
          0 ||
      !ask(getsockname, made.get(), here))
    return Socket();
  return made;
}

Socket connectTo(const Endpoint &there) {
  Socket made(socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!made)
    return made;
  int one = 1;
  setsockopt(made.get(), IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  sockaddr_in place = placeOf(there);
  if (connect(made.get(), reinterpret_cast<sockaddr *>(&place), sizeof place) !=
          0 &&
      errno != EINPROGRESS) {
    int error = errno;
    made = Socket();
    errno = error;
  }
  return made;
}

bool isChosen(const std::string &network, uint32_t address,
              const std::string &included, const std::string &excluded) {
  return included.empty() ? !isListed(network, address, excluded)
                          : isListed(network, address, included);
}

std::vector<uint32_t> addressesHere() {
  std::string included = fromEnvironment("OMPI_MCA_btl_tcp_if_include"),
              excluded = fromEnvironment("OMPI_MCA_btl_tcp_if_exclude");
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
    if (isChosen(one->ifa_name, address, included, excluded))
      (one->ifa_flags & IFF_LOOPBACK ? loops : found).push_back(address);
  }
  freeifaddrs(all);
  found.insert(found.end(), loops.begin(), loops.end());
  return found;
}

} // namespace accel::rt
