// Attention on the CPU: for each block of queries of each head, scores = q·kᵀ
// into the thread's scratch, a generated softmax over the score rows, and
// scores·v. Blocks of keys that a causal mask hides wholly are not computed.

#ifndef ACCEL_RT_DEVICE_CPU_GEMM_ATTENTION_H
#define ACCEL_RT_DEVICE_CPU_GEMM_ATTENTION_H

#include "Device/CPU/Gemm/Gemm.h"
#include "Device/CPU/Kernel.h"

#include <array>

namespace accel::rt::cpu {

/// nn.attention on strided views: query [B, H, S, D], key [B, G, T, D], value
/// [B, G, T, E], output [B, H, S, E]; strides in elements, the last one 1. The
/// mask [B, H, S, T] (strides 0 where it is broadcast) is only passed on to the
/// softmax kernel, which knows its rows' strides.
struct AttentionDesc {
  GemmType type = GemmType::F32;
  int64_t batch = 1, heads = 1, groups = 1, queries = 1, keys = 1;
  int64_t width = 1, valueWidth = 1;
  std::array<int64_t, 3> query{}, key{}, value{}, output{}; ///< strides
  bool causal = false;
  /// Bytes between the mask's batches, heads and queries; all 0 without mask.
  std::array<int64_t, 3> mask{};
};

/// Queries in a block (0: all).
struct AttentionForm {
  int64_t blockQueries = 0;
};

/// What the softmax kernel gets as its third argument, beside the scores
/// (argument 0, computed in place: f32, or f64), the mask's row of the block's
/// first query (argument 1, or null) and the probabilities of the inputs' type
/// (argument 2; equal to argument 0 unless they are bf16). It makes rows
/// [rowBegin, rowEnd) of the block.
struct SoftmaxRows {
  int64_t firstQuery;   ///< of the block: row r is query firstQuery + r
  int64_t columns;      ///< keys that were computed; the others are hidden
  int64_t scoreStride;  ///< elements between score rows
  int64_t resultStride; ///< elements between probability rows
};

/// A prepared attention; used as a Gemm is.
class Attention {
public:
  /// `softmax` is the generated kernel named by the command. Errors: strides
  /// that no form serves.
  static Status create(const AttentionDesc &desc, const AttentionForm &form,
                       KernelFunction softmax, int threads,
                       std::unique_ptr<Attention> &attention);
  virtual ~Attention();

  virtual const AttentionForm &form() const = 0;
  virtual int64_t chunks() const = 0;
  virtual int64_t scratchBytes() const = 0;
  /// Computes a chunk on the calling thread; `mask` may be null without mask.
  virtual void run(int64_t chunk, int thread, const void *query,
                   const void *key, const void *value, const void *mask,
                   void *output, void *scratch) const = 0;
};

} // namespace accel::rt::cpu

#endif // ACCEL_RT_DEVICE_CPU_GEMM_ATTENTION_H
