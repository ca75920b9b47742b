// What the flags of a compilation say of how its model is cut.

#ifndef ACCEL_LIB_DRIVER_CUTOPTIONS_H
#define ACCEL_LIB_DRIVER_CUTOPTIONS_H

#include "Phases.h"

namespace accel::driver {

/// As many chunks as mesh and schedule ask for; 1 where there is no pipeline,
/// or the text is no mesh or schedule: whoever makes them says so. And what a
/// rank has of a chunk's states, and of what it keeps for backwards, which a
/// balance of memory is of.
stages::CutForwardPassOptions getCutOptions(const PhaseOptions &options);

} // namespace accel::driver

#endif // ACCEL_LIB_DRIVER_CUTOPTIONS_H
