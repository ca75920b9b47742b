// Sockets of IPv4: their owner, where they are, and which addresses of this
// machine the user lets us use.

#ifndef ACCEL_RUNTIME_NETWORK_SOCKET_H
#define ACCEL_RUNTIME_NETWORK_SOCKET_H

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace accel::rt {

/// Closes what it owns.
class Socket {
public:
  explicit Socket(int number = -1) : number(number) {}
  Socket(Socket &&other) noexcept : number(std::exchange(other.number, -1)) {}
  Socket &operator=(Socket &&other) noexcept {
    std::swap(number, other.number);
    return *this;
  }
  ~Socket();

  explicit operator bool() const { return number >= 0; }
  int get() const { return number; }

private:
  int number;
};

/// Both as the network has them, the highest byte first.
struct Endpoint {
  uint32_t address = 0;
  uint16_t port = 0;

  bool operator==(const Endpoint &other) const {
    return address == other.address && port == other.port;
  }
};

/// Of this end of a connection, and of the other. False: it has none.
bool findEndpoints(const Socket &socket, Endpoint &here, Endpoint &there);

/// A free port of that address, which is taken and does not listen; none, with
/// errno: it cannot be had.
Socket takePort(uint32_t address, Endpoint &here);

/// Begins to connect. None, with errno: it is refused already.
Socket connectTo(const Endpoint &there);

/// Lists of names of networks and of 'address/bits', as Open MPI's
/// btl_tcp_if_include and btl_tcp_if_exclude have them; empty: no list. Whether
/// they let an address of this machine be used.
bool isChosen(const std::string &network, uint32_t address,
              const std::string &included, const std::string &excluded);

/// The addresses that others may reach this machine by, of the networks that
/// the environment lets be used; loopback last.
std::vector<uint32_t> addressesHere();

} // namespace accel::rt

#endif // ACCEL_RUNTIME_NETWORK_SOCKET_H
