// The error of an option of training that does not hold.

#ifndef ACCEL_LIB_AUTODIFF_OPTIONERROR_H
#define ACCEL_LIB_AUTODIFF_OPTIONERROR_H

#include "llvm/ADT/Twine.h"
#include "llvm/Support/Error.h"

namespace accel::autodiff {

inline llvm::Error fail(const llvm::Twine &message) {
  return llvm::createStringError(llvm::inconvertibleErrorCode(), message);
}

} // namespace accel::autodiff

#endif // ACCEL_LIB_AUTODIFF_OPTIONERROR_H
