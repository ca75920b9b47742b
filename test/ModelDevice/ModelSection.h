// What the model device's two sides call its code.

#ifndef ACCEL_TEST_MODELDEVICE_MODELSECTION_H
#define ACCEL_TEST_MODELDEVICE_MODELSECTION_H

namespace accel::rt::model {

/// A library of the CPU's kernels.
inline constexpr const char *kLibrarySection = "model.so";

} // namespace accel::rt::model

#endif // ACCEL_TEST_MODELDEVICE_MODELSECTION_H
