// A file system that has no files without a name, for both preloaded libraries:
// ACCEL_NO_UNNAMED in the environment.

#ifndef ACCEL_TEST_FAULTS_UNNAMEDFILES_H
#define ACCEL_TEST_FAULTS_UNNAMEDFILES_H

#include <cerrno>
#include <cstdlib>
#include <fcntl.h>

namespace accel::test {

/// Whether an open with these flags is refused, with errno.
inline bool isRefused(int flags) {
  bool unnamed = (flags & O_TMPFILE) == O_TMPFILE;
  if (!unnamed || !std::getenv("ACCEL_NO_UNNAMED"))
    return false;
  errno = EOPNOTSUPP;
  return true;
}

} // namespace accel::test

#endif // ACCEL_TEST_FAULTS_UNNAMEDFILES_H
