// What the model device's two sides say alike: how its code is called, and what
// a capture holds.

#ifndef ACCEL_TEST_MODELDEVICE_MODELSECTION_H
#define ACCEL_TEST_MODELDEVICE_MODELSECTION_H

#include <cstdint>

namespace accel::rt::model {

/// A library of the CPU's kernels.
inline constexpr const char *kLibrarySection = "model.so";

/// Few enough that a test has more.
inline constexpr int64_t kMostCaptured = 512;

} // namespace accel::rt::model

#endif // ACCEL_TEST_MODELDEVICE_MODELSECTION_H
