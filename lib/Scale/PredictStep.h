// How long one call of an entry takes on given machines: its streams are played
// through, command by command, as if all ranks were alike.

#ifndef ACCEL_LIB_SCALE_PREDICTSTEP_H
#define ACCEL_LIB_SCALE_PREDICTSTEP_H

#include "Traffic.h"
#include "llvm/ADT/MapVector.h"

namespace accel::scale {

/// Exchanges of one kind along the same axes.
struct ExchangeTotal {
  int64_t count = 0;
  double bytes = 0, seconds = 0; ///< Of a rank's inputs; if nothing else moved.
  llvm::SmallVector<double> busiest; ///< Of each level, see Traffic.
};

struct Prediction {
  double seconds = 0;
  /// Of the stream that computes: at work, exchanging itself, and waiting for
  /// what others bring. They add up to `seconds`.
  double computing = 0, exchanging = 0, waiting = 0;
  int64_t flops = 0;
  llvm::MapVector<mlir::StringAttr, ExchangeTotal> exchanges;
  /// Of each level, how long its busiest link is at work, the most bytes that
  /// one link takes in a direction, and what all take.
  llvm::SmallVector<double> busySeconds, busiest, all;
};

/// Commands of a stream follow each other, waits wait for records (RunList.h);
/// a command takes what its arithmetic or its bytes take, whichever is more;
/// exchanges share the links: what one has taken, the next one waits for.
Prediction predictStep(plan::EntryOp entry, const Links &links,
                       TrafficModel &traffic);

} // namespace accel::scale

#endif // ACCEL_LIB_SCALE_PREDICTSTEP_H
