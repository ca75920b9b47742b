// Which addresses lead from one machine of a run to another. A machine names
// all that it has; each of the others tries them, and believes those at which
// somebody proves to be of the run. So none is believed that leads elsewhere:
// 127.0.0.1 leads to whoever asks, and two machines may have the same private
// one.

#ifndef ACCEL_RUNTIME_NETWORK_ROUTES_H
#define ACCEL_RUNTIME_NETWORK_ROUTES_H

#include "Network/Machines.h"
#include "Network/Secret.h"

namespace accel::rt {

struct Routes {
  /// By machine, those of its addresses by which others reach it.
  std::vector<std::vector<uint32_t>> addresses;
  /// By machine, which of these leads there from here; not set for this one.
  std::vector<size_t> chosen;
};

/// Called by all. Where a machine does not reach another, `why` says so.
/// Errors: the network's.
Status findRoutes(Machines &machines, const Secret &secret, Routes &routes,
                  std::string &why);

} // namespace accel::rt

#endif // ACCEL_RUNTIME_NETWORK_ROUTES_H
