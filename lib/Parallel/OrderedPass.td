// What passes of phases `dist` and `local` are.

#ifndef ACCEL_PARALLEL_ORDEREDPASS_TD
#define ACCEL_PARALLEL_ORDEREDPASS_TD

include "mlir/Pass/PassBase.td"

/// A pass on modules that runs in its turn, which `Order.def` says.
class OrderedPass<string flag> : PassBase<flag, "::accel::parallel::OrderedPass">;

#endif
