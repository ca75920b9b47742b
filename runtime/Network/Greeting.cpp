// The steps of both sides.

#include "Network/Greeting.h"

#include <cerrno>
#include <cstring>
#include <sys/socket.h>

namespace accel::rt {
namespace {

constexpr const char *kAsker = "asker   ", *kAnswerer = "answerer";

void append(std::string &text, const void *data, size_t size) {
  text.append(static_cast<const char *>(data), size);
}

} // namespace

Greeting Greeting::ask(Socket socket, const Secret &secret,
                       const Hello &hello) {
  Greeting made(std::move(socket), secret, Step::Nonce);
  made.said = hello;
  if (!fillRandom(made.said.nonce.data(), made.said.nonce.size()).ok())
    made.state = State::Refused;
  else
    made.state = made.send(&made.said, sizeof made.said);
  return made;
}

Greeting Greeting::answer(Socket socket, const Secret &secret,
                          const IsWelcome &isWelcome) {
  Greeting made(std::move(socket), secret, Step::Hello);
  made.isWelcome = &isWelcome;
  return made;
}

Greeting::State Greeting::goOn() {
  while (state == State::Going) {
    size_t wanted = next == Step::Hello ? sizeof(Hello) : sizeof nonce;
    // Not a byte more: what follows is a message's.
    ssize_t got =
        recv(connection.get(), buffer + came, wanted - came, MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
      return state;
    if (got <= 0)
      return state = State::Refused;
    came += static_cast<size_t>(got);
    if (came < wanted)
      continue;
    came = 0;
    state = hear();
  }
  return state;
}

/// All bytes of a step have come.
Greeting::State Greeting::hear() {
  std::string text;
  switch (next) {
  case Step::Hello:
    std::memcpy(static_cast<void *>(&said), buffer, sizeof said);
    if (said.version != Hello::kVersion || !(*isWelcome)(said) ||
        !fillRandom(nonce.data(), nonce.size()).ok())
      return State::Refused;
    next = Step::Proof;
    return send(nonce.data(), nonce.size());
  case Step::Nonce: {
    std::memcpy(nonce.data(), buffer, nonce.size());
    next = Step::Proof;
    if (text = textOf(kAsker); text.empty())
      return State::Refused;
    Secret::Bytes proof = secret->prove(text.data(), text.size());
    return send(proof.data(), proof.size());
  }
  case Step::Proof:
    text = textOf(isWelcome ? kAsker : kAnswerer);
    if (text.empty() || !secret->isProof(buffer, text.data(), text.size()))
      return State::Refused;
    if (isWelcome) {
      text = textOf(kAnswerer);
      Secret::Bytes proof = secret->prove(text.data(), text.size());
      if (send(proof.data(), proof.size()) == State::Refused)
        return State::Refused;
    }
    return State::Proven;
  }
  return State::Refused;
}

/// A new connection has room for the little that is said on it.
Greeting::State Greeting::send(const void *data, size_t size) {
  return ::send(connection.get(), data, size, MSG_NOSIGNAL | MSG_DONTWAIT) ==
                 static_cast<ssize_t>(size)
             ? State::Going
             : State::Refused;
}

std::string Greeting::textOf(const char *role) const {
  Endpoint here, there;
  if (!findEndpoints(connection, here, there))
    return "";
  std::string text = role;
  append(text, &said, sizeof said);
  append(text, nonce.data(), nonce.size());
  for (const Endpoint *end : {isWelcome ? &there : &here, // the asker's
                              isWelcome ? &here : &there}) {
    append(text, &end->address, sizeof end->address);
    append(text, &end->port, sizeof end->port);
  }
  return text;
}

} // namespace accel::rt
