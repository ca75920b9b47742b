// The first values of states.

#ifndef ACCEL_LIB_EVALUATE_STATES_H
#define ACCEL_LIB_EVALUATE_STATES_H

#include "dialects/NN/NN.h"
#include "dialects/Tensor/Tensor.h"

namespace accel::evaluate {

/// The value of a state's `init`: elements, or a byte range of a file, whose
/// size and, where there is one, hash are checked. Fails with an error at the
/// state.
mlir::FailureOr<Tensor> loadState(nn::StateOp state);

} // namespace accel::evaluate

#endif // ACCEL_LIB_EVALUATE_STATES_H
