// The 256 numbers that a code of 8 bits can stand for where its exponent has a
// length of its own (Dettmers, arXiv:1511.04561; block-wise, for the states of
// optimizers: Dettmers et al., arXiv:2110.02861).

#ifndef ACCEL_DIALECTS_NN_DYNAMICMAP_H
#define ACCEL_DIALECTS_NN_DYNAMICMAP_H

#include <array>

namespace accel::nn {

/// Ascending, in [-1, 1], or in [0, 1] of the unsigned map. Seven decades, the
/// upper of which have twice as many numbers as the one below, in the middles
/// of equal parts; 0; and 1. Float32 for float32 those of bitsandbytes.
const std::array<float, 256> &getDynamicMap(bool isSigned);

/// What lies between two neighbours: a number above bound i has a code above i.
/// Of a number on the bound the lower code is as near. Float32, as
/// bitsandbytes has them.
const std::array<float, 255> &getDynamicBounds(bool isSigned);

} // namespace accel::nn

#endif // ACCEL_DIALECTS_NN_DYNAMICMAP_H
