// Floating-point operations of what ops and commands of a plan have alike, by
// sizes alone. A multiply-add counts as two.

#ifndef ACCEL_LIB_COST_FLOPS_H
#define ACCEL_LIB_COST_FLOPS_H

#include "dialects/NN/Causal.h"

namespace accel::cost {

/// Of a matrix product that sums `inner` terms for each element of its result.
template <class Number>
constexpr Number countProductFlops(Number inner, Number elements) {
  return 2 * inner * elements;
}

/// Scores of one batch that no causal mask hides, of queries [b, h, q, ·] and
/// `keys` keys.
template <class AttentionLike>
int64_t countScores(AttentionLike op, llvm::ArrayRef<int64_t> query,
                    int64_t keys) {
  return query[0] * query[1] * accel::countScores(op, query[2], keys);
}

/// Of attention over so many scores: both products, and five operations per
/// score for the softmax.
constexpr int64_t countAttentionFlops(int64_t scores, int64_t width,
                                      int64_t valueWidth) {
  return scores * (2 * (width + valueWidth) + 5);
}

/// Of its gradients: five products of the forward's two kinds, of which the
/// scores' is one, and six operations per score: its scale, less the
/// log-sum-exp, the exponential, and three for the slope.
constexpr int64_t countAttentionGradFlops(int64_t scores, int64_t width,
                                          int64_t valueWidth) {
  return scores * (2 * (3 * width + 2 * valueWidth) + 6);
}

} // namespace accel::cost

#endif // ACCEL_LIB_COST_FLOPS_H
