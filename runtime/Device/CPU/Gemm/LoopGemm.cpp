// Matrix products by a plain loop over blocks: float64, which oneDNN does not
// have and which is for proofs, and whatever oneDNN would only compute with
// allocations per call (on CPUs without AVX-512).

#include "Device/CPU/Gemm/GemmForms.h"

#include <cstring>

using namespace accel::rt;
using namespace accel::rt::cpu;

namespace {
/// bf16 in memory: the upper half of an f32.
struct BFloat16 {
  uint16_t bits;
  operator float() const {
    uint32_t wide = static_cast<uint32_t>(bits) << 16;
    float value;
    std::memcpy(&value, &wide, 4);
    return value;
  }
  BFloat16() = default;
  BFloat16(float value) {
    uint32_t wide;
    std::memcpy(&wide, &value, 4);
    if (value != value)
      wide |= 0x400000; // stays a NaN
    else
      wide += 0x7fff + ((wide >> 16) & 1); // to nearest, ties to even
    bits = static_cast<uint16_t>(wide >> 16);
  }
};

/// Columns and inner elements of a strip of b.
constexpr int64_t kStrip = 16, kDepth = 256;

template <typename In, typename Out, typename Sum>
class LoopGemm : public Gemm {
public:
  LoopGemm(const GemmDesc &desc, const GemmForm &form)
      : prepared(form), grid(desc, form) {}

  const GemmForm &form() const override { return prepared; }
  int64_t chunks() const override { return grid.count; }
  int64_t scratchBytes() const override {
    return kStrip * kDepth * sizeof(Sum) + kStrip * grid.rows * sizeof(Sum);
  }
  int64_t packedBytes() const override { return 0; }
  Status pack(const void *, void *) const override {
    return Status::error("expected a form that packs, found the plain loop");
  }

  // A strip of b is copied so that its rows follow each other whatever the
  // strides are; the sums of a strip of c stay wide until they are complete.
  void run(int64_t index, int, const void *aData, const void *bData,
           const void *biasData, void *cData, void *scratch) const override {
    const GemmDesc &desc = grid.desc;
    Chunk chunk = grid.get(index);
    auto *a = static_cast<const In *>(aData) + chunk.a;
    auto *b = static_cast<const In *>(bData) + chunk.b;
    auto *c = static_cast<Out *>(cData) + chunk.c;
    auto *bias = static_cast<const In *>(biasData) + chunk.bias;
    auto *strip = static_cast<Sum *>(scratch);
    Sum *sums = strip + kStrip * kDepth;
    for (int64_t j = 0; j < chunk.columns; j += kStrip) {
      int64_t width = std::min(kStrip, chunk.columns - j);
      std::fill(sums, sums + chunk.rows * kStrip, Sum(0));
      for (int64_t p = 0; p < desc.k; p += kDepth) {
        int64_t depth = std::min(kDepth, desc.k - p);
        for (int64_t q = 0; q < depth; ++q)
          for (int64_t l = 0; l < kStrip; ++l)
            strip[q * kStrip + l] =
                l < width ? Sum(b[(p + q) * desc.bRow + (j + l) * desc.bCol])
                          : Sum(0);
        for (int64_t row = 0; row < chunk.rows; ++row) {
          Sum block[kStrip] = {};
          const In *factors = a + row * desc.aRow + p * desc.aCol;
          for (int64_t q = 0; q < depth; ++q)
            for (int64_t l = 0; l < kStrip; ++l)
              block[l] += Sum(factors[q * desc.aCol]) * strip[q * kStrip + l];
          for (int64_t l = 0; l < kStrip; ++l)
            sums[row * kStrip + l] += block[l];
        }
      }
      for (int64_t row = 0; row < chunk.rows; ++row)
        for (int64_t l = 0; l < width; ++l) {
          Out &value = c[row * desc.cRow + j + l];
          Sum sum = sums[row * kStrip + l];
          if (desc.bias)
            sum += Sum(bias[j + l]);
          if (desc.accumulate)
            sum += Sum(value);
          value = Out(sum);
        }
    }
  }

private:
  GemmForm prepared;
  Chunks grid;
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
    gemm = std::make_unique<LoopGemm<BFloat16, float, float>>(desc, form);
  else
    gemm = std::make_unique<LoopGemm<BFloat16, BFloat16, float>>(desc, form);
  return Status();
}
