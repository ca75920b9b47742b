// The gradient of attention on the CPU: for each key head, its keys and values
// once, then for each block of queries of each of its query heads the scores
// and gradient · valueᵀ into the thread's scratch, a generated kernel that
// makes the softmax and its gradient of them row by row, from the log-sum-exps
// and the rows of output and gradient, and the three products
// that give the gradients. Blocks of keys that a causal mask hides wholly are
// not computed.

#ifndef ACCEL_RT_DEVICE_CPU_GEMM_ATTENTIONGRAD_H
#define ACCEL_RT_DEVICE_CPU_GEMM_ATTENTIONGRAD_H

#include "Device/CPU/Gemm/Attention.h"

namespace accel::rt::cpu {

/// nn.attention_grad on strided views: those of AttentionDesc, whose `output`
/// is here the gradient of the result; strides of the results likewise.
struct AttentionGradDesc {
  AttentionDesc forward;
  std::array<int64_t, 3> result{}; ///< strides of the forward's result
  std::array<int64_t, 3> queryGradient{}, keyGradient{}, valueGradient{};
  /// As `forward.logSumExp`, of its gradient.
  std::array<int64_t, 2> logSumExpGradient{};
  bool zeroMaskedRows = false;
};

/// A prepared gradient; used as a Gemm is. A chunk is a key head of a batch:
/// its sums over query heads and blocks are made by one thread in one order, so
/// that they do not depend on the number of threads.
///
/// The row kernel's arguments: the scores and the mask as the softmax's
/// (SoftmaxRows), the rows of gradient · valueᵀ (argument 2), the probabilities
/// (3; equal to argument 0 unless the inputs are narrower), the gradient of the
/// unscaled scores (4; equal to argument 2 unless they are narrower), the rows
/// of the result (5, `outputStride` apart) and of its gradient (6, without
/// gaps), the rows' log-sum-exps (7) and their gradients (8, or null), and the
/// SoftmaxRows (9).
class AttentionGrad {
public:
  struct Addresses {
    const void *query, *key, *value, *result, *logSumExp, *gradient;
    const void *logSumExpGradient; ///< null without: then the kernel has none
    const void *mask;              ///< null without mask
    void *queryGradient, *keyGradient, *valueGradient;
  };

  static Status create(const AttentionGradDesc &desc, const AttentionForm &form,
                       KernelFunction rows, int threads,
                       std::unique_ptr<AttentionGrad> &grad);
  virtual ~AttentionGrad();

  virtual const AttentionForm &form() const = 0;
  virtual int64_t chunks() const = 0;
  virtual int64_t scratchBytes() const = 0;
  /// Computes a chunk on the calling thread.
  virtual void run(int64_t chunk, int thread, const Addresses &at,
                   void *scratch) const = 0;
};

} // namespace accel::rt::cpu

#endif // ACCEL_RT_DEVICE_CPU_GEMM_ATTENTIONGRAD_H
