// Nettle's hash, and the kernel's random numbers.

#include "Network/Secret.h"

#include "Base/SystemError.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <nettle/hmac.h>
#include <nettle/memops.h>
#include <sys/random.h>

namespace accel::rt {

Status fillRandom(void *to, size_t bytes) {
  for (size_t done = 0; done < bytes;) {
    ssize_t got = getrandom(static_cast<char *>(to) + done, bytes - done, 0);
    if (got <= 0 && errno != EINTR)
      return Status::error("cannot make a random number: " +
                           systemError(errno));
    done += static_cast<size_t>(std::max<ssize_t>(got, 0));
  }
  return Status();
}

Secret::~Secret() { explicit_bzero(bytes.data(), bytes.size()); }

bool Secret::take(const std::string &text) {
  if (text.size() != bytes.size())
    return false;
  std::copy(text.begin(), text.end(), bytes.begin());
  return true;
}

Secret::Bytes Secret::prove(const void *data, size_t size) const {
  hmac_sha256_ctx context;
  hmac_sha256_set_key(&context, bytes.size(), bytes.data());
  hmac_sha256_update(&context, size, static_cast<const uint8_t *>(data));
  Bytes proof;
  hmac_sha256_digest(&context, proof.size(), proof.data());
  explicit_bzero(&context, sizeof context);
  return proof;
}

bool Secret::isProof(const uint8_t *proof, const void *data,
                     size_t size) const {
  Bytes expected = prove(data, size);
  return memeql_sec(expected.data(), proof, expected.size()) == 1;
}

} // namespace accel::rt
