// How two processes of a run come to know each other on a connection. Whoever
// has connected asks, the other answers:
//
//   asker     hello: who it is, to whom it speaks, what for; a nonce
//   answerer  a nonce
//   asker     proof("asker", all of it, both ends' addresses and ports)
//   answerer  proof("answerer", the same)
//
// A proof counts for one connection, in one direction: told to another, played
// back, passed on by whoever stands between, or sent back, it is none. Nothing
// here waits, and whoever does not know the secret learns nothing of it.

#ifndef ACCEL_RUNTIME_NETWORK_GREETING_H
#define ACCEL_RUNTIME_NETWORK_GREETING_H

#include "Network/Secret.h"
#include "Network/Socket.h"

#include <functional>

namespace accel::rt {

/// The first bytes on a connection.
struct Hello {
  enum Kind : uint32_t { Probe = 1, Lane = 2 };
  static constexpr uint64_t kVersion = 0x3265'6e61'6c63'6361; // "acclane2"

  uint64_t version = kVersion;
  int64_t from = 0, to = 0; ///< Ranks.
  uint32_t kind = 0;
  uint32_t number = 0; ///< Of the address that is tried, or of the lane.
  Secret::Bytes nonce = {};
};
static_assert(sizeof(Hello) == 64, "it has no holes");

/// Whether a hello has numbers that somebody of the run would send here.
using IsWelcome = std::function<bool(const Hello &)>;

class Greeting {
public:
  enum class State { Going, Proven, Refused };

  /// On a socket that is connected: says hello. The secret, and `isWelcome`,
  /// must outlive it.
  static Greeting ask(Socket socket, const Secret &secret, const Hello &hello);
  /// On one that came.
  static Greeting answer(Socket socket, const Secret &secret,
                         const IsWelcome &isWelcome);

  /// Reads what is there, and says what is to be said. Refused: the other is no
  /// process of the run, or is gone.
  State goOn();
  /// Of the asker; the answerer knows it once it is proven.
  const Hello &hello() const { return said; }
  const Socket &socket() const { return connection; }
  /// Once it is proven.
  Socket takeSocket() { return std::move(connection); }

private:
  enum class Step { Hello, Nonce, Proof };
  Greeting(Socket socket, const Secret &secret, Step first)
      : connection(std::move(socket)), secret(&secret), next(first) {}
  State hear();
  State send(const void *data, size_t size);
  /// What a proof of that role is of.
  std::string textOf(const char *role) const;

  Socket connection;
  const Secret *secret;
  const IsWelcome *isWelcome = nullptr; ///< Null: it asks.
  Hello said;
  Secret::Bytes nonce = {}; ///< The answerer's.
  Step next;                ///< What is to come.
  State state = State::Going;
  uint8_t buffer[sizeof(Hello)];
  size_t came = 0;
};

} // namespace accel::rt

#endif // ACCEL_RUNTIME_NETWORK_GREETING_H
