// Manifests that a test has changed, with a hash that fits them.

#ifndef ACCEL_TEST_UNIT_RUNTIME_SEALEDMANIFEST_H
#define ACCEL_TEST_UNIT_RUNTIME_SEALEDMANIFEST_H

#include "State/Manifest.h"

#include <cstdio>
#include <string>

namespace accel::rt::test {

/// A manifest with the hash of what it says.
inline std::string sealed(std::string text) {
  size_t seal = text.size() - 19;
  char hash[20];
  std::snprintf(hash, sizeof hash, "%016llx",
                static_cast<unsigned long long>(hashBytes(text.data(), seal)));
  return text.replace(seal, 16, hash);
}

} // namespace accel::rt::test

#endif // ACCEL_TEST_UNIT_RUNTIME_SEALEDMANIFEST_H
