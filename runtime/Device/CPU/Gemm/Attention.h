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
  int64_t diagonal = 0; ///< query s sees keys up to s + this, if `causal`
  /// Numbers between the log-sum-exps of batches and heads, [B, H, S]; those of
  /// queries lie side by side. All 0 where they are not wanted.
  std::array<int64_t, 2> logSumExp{};
  /// Bytes between the mask's batches, heads and queries; all 0 without mask.
  std::array<int64_t, 3> mask{};
};

/// The type of scores, of sums over them, and of their log-sum-exps.
inline GemmType getSumType(GemmType type) {
  return type == GemmType::F64 ? GemmType::F64 : GemmType::F32;
}

/// Whether numbers of the type are rounded sums.
inline bool isNarrow(GemmType type) { return getSumType(type) != type; }

/// The address so many bytes on; null stays null.
inline void *advance(const void *address, int64_t bytes) {
  return address
             ? const_cast<char *>(static_cast<const char *>(address)) + bytes
             : nullptr;
}

/// Queries in a block (0: all).
struct AttentionForm {
  int64_t blockQueries = 0;
};

/// What the softmax kernel gets as its last argument, beside the scores
/// (argument 0, computed in place: f32, or f64), the mask's row of the block's
/// first query (argument 1, or null), the probabilities of the inputs' type
/// (argument 2; equal to argument 0 unless they are narrower) and the
/// log-sum-exps of the block's rows (argument 3, of the scores' type, or null).
/// It makes rows [rowBegin, rowEnd) of the block.
struct SoftmaxRows {
  int64_t visible;     ///< keys that the block's row 0 sees, if causal; may be
                       ///< negative. Row r sees r more.
  int64_t columns;     ///< keys that were computed; the others are hidden
  int64_t scoreStride; ///< elements between score rows
  /// Elements between probability rows; `scoreStride` where they are in place.
  int64_t resultStride;
  int64_t outputStride; ///< elements between rows of the result; gradient only
};

/// A prepared attention; used as a Gemm is.
class Attention {
public:
  struct Addresses {
    const void *query, *key, *value;
    const void *mask; ///< null without mask
    void *output;
    void *logSumExp; ///< null if it is not wanted: then the kernel has none
  };

  /// `softmax` is the generated kernel named by the command. Errors: strides
  /// that no form serves.
  static Status create(const AttentionDesc &desc, const AttentionForm &form,
                       KernelFunction softmax, int threads,
                       std::unique_ptr<Attention> &attention);
  virtual ~Attention();

  virtual const AttentionForm &form() const = 0;
  virtual int64_t chunks() const = 0;
  virtual int64_t scratchBytes() const = 0;
  /// Computes a chunk on the calling thread.
  virtual void run(int64_t chunk, int thread, const Addresses &at,
                   void *scratch) const = 0;
};

/// How many keys the block of `size` queries from `first` on is computed for:
/// those that any of its rows sees. One that sees nothing has one all the same,
/// which is hidden: it still has a result.
int64_t countColumns(const AttentionDesc &desc, int64_t first, int64_t size);

} // namespace accel::rt::cpu

#endif // ACCEL_RT_DEVICE_CPU_GEMM_ATTENTION_H
