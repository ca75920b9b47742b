// What the forms of a matrix product share: how it is cut into chunks.

#ifndef ACCEL_RT_DEVICE_CPU_GEMM_GEMMFORMS_H
#define ACCEL_RT_DEVICE_CPU_GEMM_GEMMFORMS_H

#include "Device/CPU/Gemm/Gemm.h"

#include <algorithm>

namespace accel::rt::cpu {

/// Where a chunk begins in each operand, in elements, and its size.
struct Chunk {
  int64_t row = 0, column = 0; ///< of the grid
  int64_t rows = 0, columns = 0;
  int64_t a = 0, b = 0, c = 0, bias = 0;
};

/// The grid of a product's chunks: batch major, columns minor.
struct Chunks {
  Chunks(const GemmDesc &desc, const GemmForm &form);
  Chunk get(int64_t index) const;

  GemmDesc desc;
  int64_t rows, columns;
  int64_t rowChunks, columnChunks, count;
};

/// The forms of f32 and bf16: oneDNN's matmul primitive.
Status createDnnlGemm(const GemmDesc &desc, const GemmForm &form, int threads,
                      std::unique_ptr<Gemm> &gemm);
/// The form of f32 where the machine multiplies bf16 (AMX): six products of
/// pieces.
Status createBf16x6Gemm(const GemmDesc &desc, const GemmForm &form,
                        std::unique_ptr<Gemm> &gemm);
/// The form of types that no library multiplies: blocks are widened.
Status createWidenedGemm(const GemmDesc &desc, const GemmForm &form,
                         int threads, std::unique_ptr<Gemm> &gemm);
/// The form of f64: a loop over blocks.
Status createLoopGemm(const GemmDesc &desc, const GemmForm &form,
                      std::unique_ptr<Gemm> &gemm);

} // namespace accel::rt::cpu

#endif // ACCEL_RT_DEVICE_CPU_GEMM_GEMMFORMS_H
