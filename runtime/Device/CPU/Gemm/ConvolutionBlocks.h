// What the kinds of convolution share: how tensors are cut into blocks, their
// products by size, the parts of a thread's scratch.

#ifndef ACCEL_RT_DEVICE_CPU_GEMM_CONVOLUTIONBLOCKS_H
#define ACCEL_RT_DEVICE_CPU_GEMM_CONVOLUTIONBLOCKS_H

#include "Device/CPU/Gemm/ConvertRows.h"
#include "Device/CPU/Gemm/Convolution.h"

#include <algorithm>
#include <cstring>
#include <map>

namespace accel::rt::cpu {

/// Positions [first, first + count), numbered in row-major order.
struct Positions {
  int64_t first, count;
};

inline int64_t roundUp(int64_t size, int64_t unit = 64) {
  return (size + unit - 1) / unit * unit;
}
inline int64_t ceilDiv(int64_t total, int64_t size) {
  return (total + size - 1) / size;
}

/// Blocks of `size` elements, of which the last may have fewer.
struct Blocks {
  Blocks(int64_t total, int64_t size)
      : total(total), size(std::clamp<int64_t>(size, 1, total)),
        count(ceilDiv(total, this->size)) {}
  Positions get(int64_t number) const {
    int64_t first = number * size;
    return {first, std::min(size, total - first)};
  }
  /// The sizes that blocks have: one, or two.
  std::vector<int64_t> sizes() const {
    int64_t last = get(count - 1).count;
    return last == size ? std::vector<int64_t>{size}
                        : std::vector<int64_t>{size, last};
  }
  int64_t total, size, count;
};

/// What the kinds share: products by their sizes, and scratch by parts.
class ConvolutionBlocks : public Convolution {
public:
  ConvolutionBlocks(const ConvolutionDesc &desc, const ConvolutionForm &form)
      : desc(desc), bytes(getBytes(desc.type)),
        sums(desc.type == GemmType::F64 ? GemmType::F64 : GemmType::F32),
        isPointwise(desc.isPointwise()),
        places(ConvolutionDesc::count(desc.window)),
        columns(ConvolutionDesc::count(desc.out), form.columns),
        channels(desc.channels, form.channels),
        outChannels(desc.outChannels, form.outChannels),
        samples(desc.batch, form.samples) {}

  int64_t scratchBytes() const override { return scratch + inner; }

protected:
  /// Asks for a part of the scratch, which begins where it returns.
  int64_t reserve(int64_t bytes) {
    int64_t begin = scratch;
    scratch += roundUp(bytes);
    return begin;
  }
  Status addProduct(const GemmDesc &gemm, int threads) {
    std::unique_ptr<Gemm> &made = gemms[{gemm.m, gemm.n, gemm.k}];
    if (made)
      return Status();
    ACCEL_RT_RETURN_IF_ERROR(Gemm::create(gemm, {}, threads, made));
    inner = std::max(inner, made->scratchBytes());
    return Status();
  }
  void multiply(int64_t m, int64_t n, int64_t k, int thread, const void *a,
                const void *b, void *c, char *own) const {
    const Gemm &gemm = *gemms.find({m, n, k})->second;
    for (int64_t chunk = 0; chunk < gemm.chunks(); ++chunk)
      gemm.run(chunk, thread, a, b, /*bias=*/nullptr, c, own + scratch);
  }
  const char *offset(const void *data, int64_t elements) const {
    return static_cast<const char *>(data) + elements * bytes;
  }
  char *offset(void *data, int64_t elements) const {
    return static_cast<char *>(data) + elements * bytes;
  }
  int64_t sumBytes() const { return getBytes(sums); }
  bool keepsSums() const { return sums == desc.type; }
  /// Writes sums in the type of the tensors.
  void store(const void *from, int64_t count, void *to) const {
    if (keepsSums())
      std::memcpy(to, from, static_cast<size_t>(count * bytes));
    else
      narrowRow(desc.type, static_cast<const float *>(from), count, to);
  }
  int64_t sizeOfX() const { return ConvolutionDesc::count(desc.in); }

  ConvolutionDesc desc;
  int64_t bytes; ///< of an element
  GemmType sums; ///< of the gradients
  bool isPointwise;
  int64_t places; ///< of a window
  Blocks columns, channels, outChannels, samples;

private:
  std::map<std::array<int64_t, 3>, std::unique_ptr<Gemm>> gemms;
  int64_t scratch = 0, inner = 0;
};

template <class Kind>
Status makeConvolution(const ConvolutionDesc &desc, const ConvolutionForm &form,
                       int threads, std::unique_ptr<Convolution> &made) {
  auto kind = std::make_unique<Kind>(desc, form);
  ACCEL_RT_RETURN_IF_ERROR(kind->prepare(threads));
  made = std::move(kind);
  return Status();
}

/// The forms of tensors whose channels come last.
ConvolutionForm getChannelsLastForm(const ConvolutionDesc &desc);
Status createChannelsLast(const ConvolutionDesc &desc,
                          const ConvolutionForm &form, int threads,
                          std::unique_ptr<Convolution> &made);

} // namespace accel::rt::cpu

#endif // ACCEL_RT_DEVICE_CPU_GEMM_CONVOLUTIONBLOCKS_H
