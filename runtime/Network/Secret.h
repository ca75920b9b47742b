// What the processes of a run know and nobody else: it travels by MPI alone.
// On a connection it is proved, by a keyed hash of what both ends have seen,
// and never sent.

#ifndef ACCEL_RUNTIME_NETWORK_SECRET_H
#define ACCEL_RUNTIME_NETWORK_SECRET_H

#include "accel-rt/Status.h"

#include <array>
#include <cstdint>
#include <string>

namespace accel::rt {

/// Fills bytes by the system's generator. Errors: it has none.
Status fillRandom(void *to, size_t bytes);

class Secret {
public:
  using Bytes = std::array<uint8_t, 32>;

  Secret() = default;
  ~Secret();
  Secret(const Secret &) = delete;
  Secret &operator=(const Secret &) = delete;

  /// Becomes a secret that nobody had before.
  Status make() { return fillRandom(bytes.data(), bytes.size()); }
  /// For the others of the run, and theirs. False: it is none.
  std::string text() const { return std::string(bytes.begin(), bytes.end()); }
  bool take(const std::string &text);

  /// HMAC-SHA-256.
  Bytes prove(const void *data, size_t size) const;
  /// Whether the proof is that of the same secret and data; takes the same
  /// time wherever it differs.
  bool isProof(const uint8_t *proof, const void *data, size_t size) const;

private:
  Bytes bytes = {};
};

} // namespace accel::rt

#endif // ACCEL_RUNTIME_NETWORK_SECRET_H
