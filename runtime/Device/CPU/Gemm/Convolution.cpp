// The three kinds of convolution with channels first, each as products of
// blocks of windows.

#include "Device/CPU/Gemm/ConvolutionBlocks.h"
#include "Device/CPU/Gemm/Windows.h"

#include <cstring>

namespace accel::rt::cpu {
namespace {

/// A chunk is a block of positions of one sample and group: the weight times
/// the windows there.
class Forward : public ConvolutionBlocks {
public:
  using ConvolutionBlocks::ConvolutionBlocks;
  Status prepare(int threads) {
    int64_t terms = desc.channels * places;
    if (!isPointwise)
      windows = reserve(terms * columns.size * bytes);
    for (int64_t count : columns.sizes()) {
      GemmDesc gemm;
      gemm.type = gemm.outType = desc.type;
      gemm.m = desc.outChannels, gemm.n = count, gemm.k = terms;
      gemm.aRow = desc.w[1];
      gemm.bRow = isPointwise ? desc.x[2] : count;
      gemm.cRow = desc.y[2];
      ACCEL_RT_RETURN_IF_ERROR(addProduct(gemm, threads));
    }
    return Status();
  }
  int64_t chunks() const override {
    return desc.batch * desc.groups * columns.count;
  }
  void run(int64_t chunk, int thread, const void *x, const void *w, void *y,
           void *, void *scratch) const override {
    auto *own = static_cast<char *>(scratch);
    int64_t group = chunk / columns.count % desc.groups,
            sample = chunk / columns.count / desc.groups;
    Positions block = columns.get(chunk % columns.count);
    const char *input = offset(x, sample * desc.x[0] + group * desc.x[1]);
    if (isPointwise) {
      input += block.first * bytes;
    } else {
      gatherWindows(desc, input, desc.x[2], desc.channels, block,
                    own + windows);
      input = own + windows;
    }
    multiply(desc.outChannels, block.count, desc.channels * places, thread,
             offset(w, group * desc.w[0]), input,
             offset(y, sample * desc.y[0] + group * desc.y[1] + block.first),
             own);
  }

private:
  int64_t windows = 0;
};

/// A chunk is a block of channels of some samples and one group: the weight,
/// transposed once for them, times the output's gradient has the windows'
/// gradients, which are added up where they overlap.
class InputGrad : public ConvolutionBlocks {
public:
  using ConvolutionBlocks::ConvolutionBlocks;
  Status prepare(int threads) {
    weights = reserve(channels.size * places * desc.outChannels * bytes);
    if (!isPointwise) {
      windows = reserve(channels.size * places * columns.size * sumBytes());
      if (!keepsSums())
        planes = reserve(channels.size * sizeOfX() * sumBytes());
    }
    for (int64_t rows : channels.sizes())
      for (int64_t count : columns.sizes()) {
        GemmDesc gemm;
        gemm.type = desc.type;
        gemm.outType = isPointwise ? desc.type : sums;
        gemm.m = rows * places, gemm.n = count, gemm.k = desc.outChannels;
        gemm.aRow = desc.outChannels;
        gemm.bRow = desc.y[2];
        gemm.cRow = isPointwise ? desc.x[2] : count;
        ACCEL_RT_RETURN_IF_ERROR(addProduct(gemm, threads));
      }
    return Status();
  }
  int64_t chunks() const override {
    return samples.count * desc.groups * channels.count;
  }
  void run(int64_t chunk, int thread, const void *y, const void *w, void *x,
           void *, void *scratch) const override {
    auto *own = static_cast<char *>(scratch);
    int64_t group = chunk / channels.count % desc.groups;
    Positions block = channels.get(chunk % channels.count),
              some = samples.get(chunk / channels.count / desc.groups);
    transpose(offset(w, group * desc.w[0] + block.first * places),
              block.count * places, own + weights);
    for (int64_t sample = some.first; sample < some.first + some.count;
         ++sample)
      runSample(sample, group, block, thread, y, x, own);
  }

private:
  void runSample(int64_t sample, int64_t group, Positions block, int thread,
                 const void *y, void *x, char *own) const {
    int64_t rows = block.count * places;
    const char *gradient = offset(y, sample * desc.y[0] + group * desc.y[1]);
    char *input = offset(x, sample * desc.x[0] + group * desc.x[1] +
                                block.first * desc.x[2]);
    if (isPointwise) {
      for (int64_t number = 0; number < columns.count; ++number) {
        Positions column = columns.get(number);
        multiply(rows, column.count, desc.outChannels, thread, own + weights,
                 gradient + column.first * bytes, input + column.first * bytes,
                 own);
      }
      return;
    }
    // Sums that are wider than their type are kept in scratch.
    char *target = keepsSums() ? input : own + planes;
    int64_t pitch = keepsSums() ? desc.x[2] : sizeOfX();
    for (int64_t channel = 0; channel < block.count; ++channel)
      std::memset(target + channel * pitch * sumBytes(), 0,
                  static_cast<size_t>(sizeOfX() * sumBytes()));
    for (int64_t number = 0; number < columns.count; ++number) {
      Positions column = columns.get(number);
      multiply(rows, column.count, desc.outChannels, thread, own + weights,
               gradient + column.first * bytes, own + windows, own);
      scatterWindows(desc, own + windows, block.count, column, target, pitch);
    }
    if (!keepsSums())
      for (int64_t channel = 0; channel < block.count; ++channel)
        store(target + channel * pitch * sumBytes(), sizeOfX(),
              input + channel * desc.x[2] * bytes);
  }

  /// The weight's columns of `rows` channels and places, as rows.
  void transpose(const char *weight, int64_t rows, char *to) const {
    auto copy = [&](auto zero) {
      using T = decltype(zero);
      auto *from = reinterpret_cast<const T *>(weight);
      auto *out = reinterpret_cast<T *>(to);
      for (int64_t row = 0; row < rows; ++row)
        for (int64_t o = 0; o < desc.outChannels; ++o)
          *out++ = from[o * desc.w[1] + row];
    };
    switch (bytes) {
    case 8:
      return copy(uint64_t());
    case 4:
      return copy(uint32_t());
    default:
      return copy(uint16_t());
    }
  }

  int64_t weights = 0, windows = 0, planes = 0;
};

/// A chunk is a block of the weight: the sum, over samples and blocks of
/// positions in their order, of the output's gradient times the windows.
class WeightGrad : public ConvolutionBlocks {
public:
  using ConvolutionBlocks::ConvolutionBlocks;
  Status prepare(int threads) {
    if (!isPointwise)
      windows = reserve(channels.size * places * columns.size * bytes);
    total = reserve(outChannels.size * channels.size * places * sumBytes());
    for (int64_t outs : outChannels.sizes())
      for (int64_t rows : channels.sizes())
        for (int64_t count : columns.sizes()) {
          GemmDesc gemm;
          gemm.type = desc.type, gemm.outType = sums;
          gemm.m = outs, gemm.n = rows * places, gemm.k = count;
          gemm.aRow = desc.y[2];
          gemm.bRow = 1, gemm.bCol = isPointwise ? desc.x[2] : count;
          gemm.cRow = rows * places;
          gemm.accumulate = true;
          ACCEL_RT_RETURN_IF_ERROR(addProduct(gemm, threads));
        }
    return Status();
  }
  int64_t chunks() const override {
    return desc.groups * outChannels.count * channels.count;
  }
  void run(int64_t chunk, int thread, const void *x, const void *y, void *w,
           void *, void *scratch) const override {
    auto *own = static_cast<char *>(scratch);
    Positions block = channels.get(chunk % channels.count),
              outs =
                  outChannels.get(chunk / channels.count % outChannels.count);
    int64_t group = chunk / channels.count / outChannels.count;
    int64_t rows = block.count * places;
    std::memset(own + total, 0,
                static_cast<size_t>(outs.count * rows * sumBytes()));
    for (int64_t sample = 0; sample < desc.batch; ++sample) {
      const char *input = offset(x, sample * desc.x[0] + group * desc.x[1] +
                                        block.first * desc.x[2]),
                 *gradient = offset(y, sample * desc.y[0] + group * desc.y[1] +
                                           outs.first * desc.y[2]);
      for (int64_t number = 0; number < columns.count; ++number) {
        Positions column = columns.get(number);
        const char *operand = input + column.first * bytes;
        if (!isPointwise) {
          gatherWindows(desc, input, desc.x[2], block.count, column,
                        own + windows);
          operand = own + windows;
        }
        multiply(outs.count, rows, column.count, thread,
                 gradient + column.first * bytes, operand, own + total, own);
      }
    }
    for (int64_t out = 0; out < outs.count; ++out)
      store(own + total + out * rows * sumBytes(), rows,
            offset(w, group * desc.w[0] + (outs.first + out) * desc.w[1] +
                          block.first * places));
  }

private:
  int64_t windows = 0, total = 0;
};

} // namespace

Convolution::~Convolution() = default;

ConvolutionForm getDefaultForm(const ConvolutionDesc &desc) {
  if (desc.channelsLast)
    return getChannelsLastForm(desc);
  // Elements of a block of windows, and the shortest products worth calling.
  constexpr int64_t kBlock = 48 * 1024, kShortest = 48, kLongest = 256;
  // Chunks that keep the threads of a large machine busy, and blocks of
  // channels of x and y below which products are too small.
  constexpr int64_t kChunks = 16, kFewest = 16, kFewestOut = 64;
  int64_t places = ConvolutionDesc::count(desc.window),
          positions = ConvolutionDesc::count(desc.out);
  ConvolutionForm form{kLongest, desc.channels, desc.outChannels, 1};
  if (desc.kind == ConvolutionKind::Forward) {
    int64_t fitting = kBlock / (desc.channels * places) / 16 * 16;
    form.columns = std::clamp(fitting, kShortest, kLongest);
  } else {
    form.channels =
        std::max<int64_t>(1, kBlock / (places * std::min(kLongest, positions)));
  }
  form.columns = std::min(form.columns, positions);
  form.channels = std::min(form.channels, desc.channels);
  // Channels come first: what is gathered, or transposed, for a block of them
  // need not be again.
  int64_t fewest = std::max<int64_t>(kFewest, kShortest * 2 / places);
  auto chunks = [&](int64_t others) {
    return desc.groups * ceilDiv(desc.channels, form.channels) * others;
  };
  if (desc.kind == ConvolutionKind::WeightGrad) {
    auto others = [&] { return ceilDiv(desc.outChannels, form.outChannels); };
    while (form.channels > fewest && chunks(others()) < kChunks)
      form.channels = std::max(fewest, ceilDiv(form.channels, 2));
    while (form.outChannels > kFewestOut && chunks(others()) < kChunks)
      form.outChannels = ceilDiv(form.outChannels, 2);
  }
  if (desc.kind == ConvolutionKind::InputGrad) {
    form.samples = desc.batch;
    auto others = [&] { return ceilDiv(desc.batch, form.samples); };
    while (form.channels > fewest && chunks(others()) < kChunks)
      form.channels = std::max(fewest, ceilDiv(form.channels, 2));
    while (form.samples > 1 && chunks(others()) < kChunks)
      form.samples = ceilDiv(form.samples, 2);
  }
  return form;
}

Status Convolution::create(const ConvolutionDesc &desc,
                           const ConvolutionForm &form, int threads,
                           std::unique_ptr<Convolution> &made) {
  if (getBytes(desc.type) == 1)
    return Status::error("expected a convolution of 16 bits or more");
  if (desc.channelsLast)
    return createChannelsLast(desc, form, threads, made);
  switch (desc.kind) {
  case ConvolutionKind::Forward:
    return makeConvolution<Forward>(desc, form, threads, made);
  case ConvolutionKind::InputGrad:
    return makeConvolution<InputGrad>(desc, form, threads, made);
  case ConvolutionKind::WeightGrad:
    return makeConvolution<WeightGrad>(desc, form, threads, made);
  }
  return Status::error("expected a kind of convolution");
}

} // namespace accel::rt::cpu
