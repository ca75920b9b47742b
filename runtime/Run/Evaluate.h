// What one rank does of an evaluation: the entry eval on every batch.

#ifndef ACCEL_RUNTIME_RUN_EVALUATE_H
#define ACCEL_RUNTIME_RUN_EVALUATE_H

#include "Run/Train.h"

namespace accel::rt {

/// Calls the entry eval on all batches of `call`, whose transfers `io` makes.
/// Writes the mean of their losses and the seconds it took to `record`; all
/// ranks find the same. Between two batches it gives up, and writes nothing,
/// where the run is to end in order. Errors say of which batch they are.
Status evaluate(const RankParts &parts, const Call &call, InputOutput &io,
                StepRecord &record);

} // namespace accel::rt

#endif // ACCEL_RUNTIME_RUN_EVALUATE_H
