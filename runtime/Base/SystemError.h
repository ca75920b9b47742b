// Why a system call failed, for people: where a resource is used up, which one
// it is and what can be done.

#ifndef ACCEL_RUNTIME_BASE_SYSTEMERROR_H
#define ACCEL_RUNTIME_BASE_SYSTEMERROR_H

#include <string>

namespace accel::rt {

/// The text of an errno, and where it means that a resource is used up, what
/// limits it.
std::string systemError(int error);

} // namespace accel::rt

#endif // ACCEL_RUNTIME_BASE_SYSTEMERROR_H
