// What an exchange between ranks takes, of the kinds that reshards are made of.

#ifndef ACCEL_LIB_COST_EXCHANGE_H
#define ACCEL_LIB_COST_EXCHANGE_H

#include "Machine.h"

namespace accel::cost {

enum class Exchange {
  AllGather,
  AllSlice, ///< each rank takes its part of what all have
  AllToAll,
  AllReduce,
  ReduceScatter,
  Permute
};

/// Of `ranks` ranks of which each has `bytes` before, over one kind of link
/// (Thakur, Rabenseifner and Gropp, Optimization of Collective Communication
/// Operations in MPICH, 2005, without the terms of the number of steps).
double getSeconds(Exchange kind, double ranks, double bytes, const Link &link);

} // namespace accel::cost

#endif // ACCEL_LIB_COST_EXCHANGE_H
