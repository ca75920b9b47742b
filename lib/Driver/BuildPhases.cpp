// The story of a compilation: which passes lead from each phase to the next,
// and why they stand in this order.

#include "accel/Driver/Phases.h"

using namespace mlir;
using namespace accel::driver;

void accel::driver::buildPhase(Phase phase, OpPassManager &pm,
                               const PhaseOptions &options) {
  switch (phase) {
  case Phase::NN:
    return;
  case Phase::Train:
    return;
  case Phase::Dist:
    return;
  case Phase::Decided:
    return;
  case Phase::Local:
    return;
  case Phase::Plan:
    return;
  }
}
