// The network of MPI: a plug-in beside acc-run, which alone is linked with MPI,
// so that a machine without it runs everything else.

#ifndef ACCEL_RUNTIME_NETWORK_MPINETWORK_H
#define ACCEL_RUNTIME_NETWORK_MPINETWORK_H

#include "Network/Network.h"

namespace accel::rt {

/// Loads the plug-in and joins the processes that mpirun or srun has started
/// (alone: one rank). Waits for all of them to come. Errors: acc was built
/// without MPI, the machine has none, or MPI cannot start.
Status joinMpi(std::unique_ptr<Network> &network);

/// What the plug-in exports: makes the network, or says why not in `error`.
using MakeMpiNetwork = Network *(*)(char *error, size_t errorBytes);
inline constexpr const char *kMakeMpiNetwork = "accelMakeMpiNetwork1";
inline constexpr const char *kMpiPlugin = "libaccel-mpi.so";

} // namespace accel::rt

#endif // ACCEL_RUNTIME_NETWORK_MPINETWORK_H
