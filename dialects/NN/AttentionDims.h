// Which dimension of an operand of attention is which: queries, keys and values
// are [batch, heads, rows, width], a mask is [batch, heads, rows, columns].

#ifndef ACCEL_DIALECTS_NN_ATTENTIONDIMS_H
#define ACCEL_DIALECTS_NN_ATTENTIONDIMS_H

namespace accel::nn {

inline constexpr unsigned kHeadDim = 1;
inline constexpr unsigned kRowDim = 2; ///< of queries; of keys and values, keys
inline constexpr unsigned kColumnDim = 3; ///< of masks: keys

} // namespace accel::nn

#endif // ACCEL_DIALECTS_NN_ATTENTIONDIMS_H
