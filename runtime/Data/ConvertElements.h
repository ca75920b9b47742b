// Elements of a file in the type that a program wants them in, where that
// keeps every value: whole numbers in another width, and floating point in a
// wider one. And floating point in the type that a file is to have, rounded.

#ifndef ACCEL_RUNTIME_DATA_CONVERTELEMENTS_H
#define ACCEL_RUNTIME_DATA_CONVERTELEMENTS_H

#include "accel-rt/Status.h"
#include "accel-rt/TensorFormat.h"

namespace accel::rt {

/// Whether elements of type `from` may stand where `to` is wanted: the same
/// type, whole numbers for whole numbers (of which each is checked where it
/// might not fit), and floating point for a type that has all of its values.
bool canConvert(DType from, DType to);

/// Converts the `count` elements at the start of `buffer` in place. Requires
/// canConvert, and room for both. Errors: a whole number that `to` cannot hold.
Status convertElements(DType from, DType to, char *buffer, int64_t count);

bool isFloatingPoint(DType dtype);

/// Rounds the `count` floating-point elements at the start of `buffer` to
/// another floating-point type in place: once, to nearest, ties to even; what
/// is beyond its largest number becomes infinity. Requires room for both.
void roundElements(DType from, DType to, char *buffer, int64_t count);

} // namespace accel::rt

#endif // ACCEL_RUNTIME_DATA_CONVERTELEMENTS_H
