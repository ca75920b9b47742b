// All op groups of nn in one file for tablegen.

#ifndef ACCEL_NN_OPS_TD
#define ACCEL_NN_OPS_TD

include "dialects/NN/NNState.td"
include "dialects/NN/NNElementwise.td"
include "dialects/NN/NNShape.td"
include "dialects/NN/NNLinear.td"
include "dialects/NN/NNConvolution.td"
include "dialects/NN/NNReduction.td"
include "dialects/NN/NNNorm.td"
include "dialects/NN/NNAttention.td"
include "dialects/NN/NNLoss.td"

#endif
