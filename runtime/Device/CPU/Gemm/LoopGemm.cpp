// Matrix products by our own blocked loop: float64, which oneDNN does not have,
// and whatever oneDNN would only compute with allocations per call (everything,
// on CPUs without AVX-512). Both operands are copied into strips that the inner
// loop reads in order; it keeps a block of c in registers, as in Goto and van
// de Geijn, "Anatomy of high-performance matrix multiplication", 2008.

#include "Device/CPU/Gemm/GemmForms.h"
#include "accel-rt/NumberFormat.h"

#include <cstring>

using namespace accel::rt;
using namespace accel::rt::cpu;

namespace {
/// An element in memory of a format that is narrower than f32.
template <const NumberFormat &F> struct Narrow {
  std::conditional_t<F.bits() == 8, uint8_t, uint16_t> code;
  operator float() const { return widenNumber<F>(code); }
  Narrow() = default;
  Narrow(float value)
      : code(static_cast<decltype(code)>(narrowNumber<F>(value))) {}
};

/// Rows of a block of c, and inner elements of a strip of b.
constexpr int64_t kRows = 6, kDepth = 256;
/// Columns of a block: two vectors of 32 bytes.
template <typename Sum> constexpr int64_t kColumns = 64 / sizeof(Sum);

/// sums[kRows][kColumns] += a[depth][kRows]ᵀ · b[depth][kColumns].
template <typename Sum>
[[gnu::always_inline]] inline void multiplyBlock(int64_t depth, const Sum *a,
                                                 const Sum *b, Sum *sums) {
  typedef Sum Vector __attribute__((vector_size(32), aligned(sizeof(Sum))));
  constexpr int64_t half = kColumns<Sum> / 2;
  Vector block[kRows][2];
  for (int64_t row = 0; row < kRows; ++row)
    for (int64_t side = 0; side < 2; ++side)
      block[row][side] = *reinterpret_cast<const Vector *>(
          sums + row * kColumns<Sum> + side * half);
  for (int64_t q = 0; q < depth; ++q) {
    auto left = *reinterpret_cast<const Vector *>(b + q * kColumns<Sum>);
    auto right =
        *reinterpret_cast<const Vector *>(b + q * kColumns<Sum> + half);
#pragma clang loop unroll(full)
    for (int64_t row = 0; row < kRows; ++row) {
      Sum factor = a[q * kRows + row];
      block[row][0] += factor * left;
      block[row][1] += factor * right;
    }
  }
  for (int64_t row = 0; row < kRows; ++row)
    for (int64_t side = 0; side < 2; ++side)
      *reinterpret_cast<Vector *>(sums + row * kColumns<Sum> + side * half) =
          block[row][side];
}

template <typename Sum>
using Multiply = void (*)(int64_t, const Sum *, const Sum *, Sum *);
template <typename Sum>
void multiplyAnywhere(int64_t depth, const Sum *a, const Sum *b, Sum *sums) {
  multiplyBlock(depth, a, b, sums);
}
#ifdef __x86_64__
template <typename Sum>
[[gnu::target("avx2,fma")]] void multiplyAvx2(int64_t depth, const Sum *a,
                                              const Sum *b, Sum *sums) {
  multiplyBlock(depth, a, b, sums);
}
#endif

template <typename Sum> Multiply<Sum> chooseMultiply() {
#ifdef __x86_64__
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
    return multiplyAvx2<Sum>;
#endif
  return multiplyAnywhere<Sum>;
}

template <typename In, typename Out, typename Sum>
class LoopGemm : public Gemm {
public:
  LoopGemm(const GemmDesc &desc, const GemmForm &form)
      : prepared(form), grid(desc, form) {}

  const GemmForm &form() const override { return prepared; }
  int64_t chunks() const override { return grid.count; }
  int64_t scratchBytes() const override {
    int64_t elements =
        kDepth * kColumns<Sum> +
        blocks(grid.rows) * kRows * (grid.desc.k + kColumns<Sum>);
    return (elements * sizeof(Sum) + 63) / 64 * 64;
  }
  int64_t packedBytes() const override { return 0; }
  Status pack(const void *, void *) const override {
    return Status::error("expected a form that packs, found the plain loop");
  }

  // Sums of a strip of c stay wide until they are complete.
  void run(int64_t index, int, const void *aData, const void *bData,
           const void *biasData, void *cData, void *scratch) const override {
    const GemmDesc &desc = grid.desc;
    Chunk chunk = grid.get(index);
    auto *a = static_cast<const In *>(aData) + chunk.a;
    auto *b = static_cast<const In *>(bData) + chunk.b;
    auto *c = static_cast<Out *>(cData) + chunk.c;
    auto *bias = static_cast<const In *>(biasData) + chunk.bias;
    constexpr int64_t width = kColumns<Sum>;
    int64_t rowBlocks = blocks(chunk.rows);
    auto *strip = static_cast<Sum *>(scratch);
    Sum *sums = strip + kDepth * width;
    Sum *left = sums + rowBlocks * kRows * width;
    copyLeft(a, chunk.rows, left);
    for (int64_t j = 0; j < chunk.columns; j += width) {
      int64_t columns = std::min(width, chunk.columns - j);
      std::fill(sums, sums + rowBlocks * kRows * width, Sum(0));
      for (int64_t p = 0; p < desc.k; p += kDepth) {
        int64_t depth = std::min(kDepth, desc.k - p);
        copyRight(b + p * desc.bRow + j * desc.bCol, depth, columns, strip);
        for (int64_t block = 0; block < rowBlocks; ++block)
          multiply(depth, left + (block * desc.k + p) * kRows, strip,
                   sums + block * kRows * width);
      }
      for (int64_t row = 0; row < chunk.rows; ++row)
        for (int64_t l = 0; l < columns; ++l) {
          Out &value = c[row * desc.cRow + j + l];
          Sum sum = sums[row * width + l];
          if (desc.bias)
            sum += Sum(bias[j + l]);
          if (desc.accumulate)
            sum += Sum(value);
          value = Out(sum);
        }
    }
  }

private:
  static int64_t blocks(int64_t rows) { return (rows + kRows - 1) / kRows; }

  /// Blocks of kRows rows of a, one after another, each column by column.
  void copyLeft(const In *a, int64_t rows, Sum *left) const {
    const GemmDesc &desc = grid.desc;
    for (int64_t first = 0; first < rows; first += kRows)
      for (int64_t q = 0; q < desc.k; ++q)
        for (int64_t row = first; row < first + kRows; ++row)
          *left++ =
              row < rows ? Sum(a[row * desc.aRow + q * desc.aCol]) : Sum(0);
  }

  /// A strip of b row by row, filled up with zeros.
  void copyRight(const In *b, int64_t depth, int64_t columns,
                 Sum *strip) const {
    const GemmDesc &desc = grid.desc;
    constexpr int64_t width = kColumns<Sum>;
    if (columns == width && desc.bCol == 1) {
      for (int64_t q = 0; q < depth; ++q, strip += width, b += desc.bRow)
        for (int64_t l = 0; l < width; ++l)
          strip[l] = Sum(b[l]);
      return;
    }
    for (int64_t l = 0; l < width; ++l)
      for (int64_t q = 0; q < depth; ++q)
        strip[q * width + l] =
            l < columns ? Sum(b[q * desc.bRow + l * desc.bCol]) : Sum(0);
  }

  GemmForm prepared;
  Chunks grid;
  Multiply<Sum> multiply = chooseMultiply<Sum>();
};
} // namespace

Status cpu::createLoopGemm(const GemmDesc &desc, const GemmForm &form,
                           std::unique_ptr<Gemm> &gemm) {
  if (form.packed)
    return Status::error("expected a product that oneDNN computes, as its form "
                         "packs weights");
  if (desc.type == GemmType::F64)
    gemm = std::make_unique<LoopGemm<double, double, double>>(desc, form);
  else if (desc.type == GemmType::F32)
    gemm = std::make_unique<LoopGemm<float, float, float>>(desc, form);
  else if (desc.outType == GemmType::F32)
    gemm = std::make_unique<LoopGemm<Narrow<kBF16>, float, float>>(desc, form);
  else
    gemm = std::make_unique<LoopGemm<Narrow<kBF16>, Narrow<kBF16>, float>>(
        desc, form);
  return Status();
}
