// The three kinds of convolution with channels last: rows of windows times the
// weight.

#include "Device/CPU/Gemm/WindowRows.h"

using namespace accel::rt;
using namespace accel::rt::cpu;

namespace {

/// A tensor whose rows are positions of samples.
struct Side {
  const std::array<int64_t, 4> &strides;
  int64_t channels, positions;

  /// Whether rows of all samples lie evenly apart.
  bool isEven() const {
    return positions == 1 ? strides[0] >= channels
                          : strides[0] == positions * strides[3];
  }
  int64_t rowStride() const { return positions == 1 ? strides[0] : strides[3]; }
};

Side sideOfX(const ConvolutionDesc &desc) {
  return {desc.x, desc.channels, ConvolutionDesc::count(desc.in)};
}
Side sideOfY(const ConvolutionDesc &desc) {
  return {desc.y, desc.outChannels, ConvolutionDesc::count(desc.out)};
}

/// What windows are multiplied by: the forward, or of strides of 1 the input's
/// gradient, whose windows lie in y.
bool multipliesWindows(const ConvolutionDesc &desc) {
  return desc.kind == ConvolutionKind::Forward ||
         (desc.kind == ConvolutionKind::InputGrad &&
          desc.stride == ConvolutionDesc::Space{1, 1, 1});
}

/// A chunk is a block of rows and of channels of the result: the windows there,
/// each a row, times the weight.
class WindowProduct : public ConvolutionBlocks {
public:
  WindowProduct(const ConvolutionDesc &desc, const ConvolutionForm &form)
      : ConvolutionBlocks(desc, form),
        forward(desc.kind == ConvolutionKind::Forward),
        from(forward ? sideOfX(this->desc) : sideOfY(this->desc)),
        to(forward ? sideOfY(this->desc) : sideOfX(this->desc)),
        walk(forward ? WindowWalk::overInput(desc)
                     : WindowWalk::overOutput(desc)),
        blocks(forward ? outChannels : channels),
        span(to.isEven() && (!isPointwise || from.isEven()) ? desc.batch : 1),
        rows(span * to.positions, form.columns) {}

  Status prepare(int threads) {
    int64_t terms = from.channels * places;
    int64_t summed = desc.w[forward ? 2 : 1], made = desc.w[forward ? 1 : 2];
    if (!isPointwise)
      windows = reserve(rows.size * terms * bytes);
    for (int64_t count : rows.sizes())
      for (int64_t columns : blocks.sizes()) {
        GemmDesc gemm;
        gemm.type = gemm.outType = desc.type;
        gemm.m = count, gemm.n = columns, gemm.k = terms;
        gemm.aRow = isPointwise ? from.rowStride() : terms;
        gemm.bRow = from.channels == 1 ? desc.w[3] : summed;
        gemm.bCol = made;
        gemm.cRow = to.rowStride();
        ACCEL_RT_RETURN_IF_ERROR(addProduct(gemm, threads));
      }
    return Status();
  }
  int64_t chunks() const override {
    return desc.batch / span * desc.groups * blocks.count * rows.count;
  }
  void run(int64_t chunk, int thread, const void *a, const void *w, void *c,
           void *, void *scratch) const override {
    auto *own = static_cast<char *>(scratch);
    Positions block = blocks.get(chunk % blocks.count);
    chunk /= blocks.count;
    Positions some = rows.get(chunk % rows.count);
    chunk /= rows.count;
    int64_t group = chunk % desc.groups, sample = chunk / desc.groups * span;
    const char *input =
        offset(a, sample * from.strides[0] + group * from.strides[1]);
    if (isPointwise) {
      input += some.first * from.rowStride() * bytes;
    } else {
      gatherWindowRows(walk, input,
                       {from.strides[0] * bytes, from.strides[3] * bytes,
                        from.channels * bytes},
                       some, own + windows);
      input = own + windows;
    }
    multiply(
        some.count, block.count, from.channels * places, thread, input,
        offset(w, group * desc.w[0] + block.first * desc.w[forward ? 1 : 2]),
        offset(c, sample * to.strides[0] + group * to.strides[1] +
                      some.first * to.rowStride() + block.first),
        own);
  }

private:
  bool forward;
  Side from, to;
  WindowWalk walk;
  Blocks blocks;
  int64_t span; ///< samples whose rows are one list
  Blocks rows;
  int64_t windows = 0;
};

/// The input's gradient of a convolution that leaves elements out. A chunk is a
/// sample of a group: place by place, the output's gradient times the weight is
/// added to the elements that stand there.
class StridedInputGrad : public ConvolutionBlocks {
public:
  StridedInputGrad(const ConvolutionDesc &desc, const ConvolutionForm &form)
      : ConvolutionBlocks(desc, form), output(sideOfY(this->desc)),
        walk(WindowWalk::overInput(desc)),
        rows(output.positions, form.columns) {}

  Status prepare(int threads) {
    terms = reserve(rows.size * desc.channels * sumBytes());
    if (!keepsSums())
      sample = reserve(sizeOfX() * desc.channels * sumBytes());
    for (int64_t count : rows.sizes()) {
      GemmDesc gemm;
      gemm.type = desc.type, gemm.outType = sums;
      gemm.m = count, gemm.n = desc.channels, gemm.k = desc.outChannels;
      gemm.aRow = output.rowStride();
      gemm.bRow = desc.w[1], gemm.bCol = desc.w[2];
      gemm.cRow = desc.channels;
      ACCEL_RT_RETURN_IF_ERROR(addProduct(gemm, threads));
    }
    return Status();
  }
  int64_t chunks() const override { return desc.batch * desc.groups; }
  void run(int64_t chunk, int thread, const void *y, const void *w, void *x,
           void *, void *scratch) const override {
    auto *own = static_cast<char *>(scratch);
    int64_t group = chunk % desc.groups, number = chunk / desc.groups;
    char *input = offset(x, number * desc.x[0] + group * desc.x[1]);
    const char *gradient = offset(y, number * desc.y[0] + group * desc.y[1]);
    char *target = keepsSums() ? input : own + sample;
    int64_t stride = keepsSums() ? desc.x[3] : desc.channels;
    size_t run = static_cast<size_t>(desc.channels * sumBytes());
    for (int64_t element = 0; element < sizeOfX(); ++element)
      std::memset(target + element * stride * sumBytes(), 0, run);
    for (int64_t block = 0; block < rows.count; ++block) {
      Positions some = rows.get(block);
      for (int64_t place = 0; place < places; ++place) {
        multiply(some.count, desc.channels, desc.outChannels, thread,
                 gradient + some.first * output.rowStride() * bytes,
                 offset(w, group * desc.w[0] + place * desc.w[3]), own + terms,
                 own);
        scatterWindowRows(walk, place, sums, own + terms, some, desc.channels,
                          stride, target);
      }
    }
    if (!keepsSums())
      for (int64_t element = 0; element < sizeOfX(); ++element)
        store(target + element * stride * sumBytes(), desc.channels,
              input + element * desc.x[3] * bytes);
  }

private:
  Side output;
  WindowWalk walk;
  Blocks rows;
  int64_t terms = 0, sample = 0;
};

/// A chunk is a block of the weight and a part of the samples: the sum, over
/// blocks of their rows in order, of the output's gradient, transposed, times
/// the windows. Of several parts the sums are added up in order at last.
class WindowWeightGrad : public ConvolutionBlocks {
public:
  WindowWeightGrad(const ConvolutionDesc &desc, const ConvolutionForm &form)
      : ConvolutionBlocks(desc, form), input(sideOfX(this->desc)),
        output(sideOfY(this->desc)), walk(WindowWalk::overInput(desc)),
        isOneList(output.isEven() && (!isPointwise || input.isEven())) {
    // A product has rows of one part of the samples, or of one sample.
    for (int64_t count : isOneList ? samples.sizes() : std::vector<int64_t>{1})
      rows.emplace(count, Blocks(count * output.positions, form.columns));
  }

  Status prepare(int threads) {
    int64_t longest = 0;
    for (const auto &[count, blocks] : rows)
      longest = std::max(longest, blocks.size);
    if (!isPointwise)
      windows = reserve(longest * channels.size * places * bytes);
    total = reserve(outChannels.size * channels.size * places * sumBytes());
    for (const auto &[count, blocks] : rows)
      for (int64_t terms : blocks.sizes())
        for (int64_t outs : outChannels.sizes())
          for (int64_t some : channels.sizes()) {
            GemmDesc gemm;
            gemm.type = desc.type, gemm.outType = sums;
            gemm.m = outs, gemm.n = some * places, gemm.k = terms;
            gemm.aRow = 1, gemm.aCol = output.rowStride();
            gemm.bRow = isPointwise ? input.rowStride() : some * places;
            gemm.cRow = some * places;
            gemm.accumulate = true;
            ACCEL_RT_RETURN_IF_ERROR(addProduct(gemm, threads));
          }
    return Status();
  }
  int64_t chunks() const override { return samples.count * chunksOfPart(); }
  int64_t sharedBytes() const override {
    return samples.count == 1
               ? 0
               : roundUp(samples.count * elements() * sumBytes());
  }
  void run(int64_t chunk, int thread, const void *x, const void *y, void *w,
           void *shared, void *scratch) const override {
    auto *own = static_cast<char *>(scratch);
    int64_t part = chunk / chunksOfPart();
    Piece piece = getPiece(chunk % chunksOfPart());
    std::memset(own + total, 0,
                static_cast<size_t>(piece.outs.count * piece.channels.count *
                                    places * sumBytes()));
    Positions some = samples.get(part);
    int64_t step = isOneList ? some.count : 1;
    for (int64_t done = 0; done < some.count; done += step)
      addSamples(some.first + done, rows.at(step), piece, thread, x, y, own);
    if (samples.count == 1)
      storeWeight(piece, own + total, w);
    else
      storeSums(piece, own + total,
                static_cast<char *>(shared) + part * elements() * sumBytes());
  }
  int64_t lastChunks() const override {
    return samples.count == 1 ? 0 : chunksOfPart();
  }
  void runLast(int64_t chunk, const void *shared, void *w) const override {
    Piece piece = getPiece(chunk);
    if (sums == GemmType::F64)
      addParts(piece, static_cast<const double *>(shared), w);
    else
      addParts(piece, static_cast<const float *>(shared), w);
  }

private:
  /// What a chunk makes of the weight.
  struct Piece {
    int64_t group;
    Positions outs, channels;
  };
  Piece getPiece(int64_t number) const {
    Piece piece;
    piece.channels = channels.get(number % channels.count);
    piece.outs = outChannels.get(number / channels.count % outChannels.count);
    piece.group = number / channels.count / outChannels.count;
    return piece;
  }
  int64_t chunksOfPart() const {
    return desc.groups * outChannels.count * channels.count;
  }
  /// Of the weight; its sums lie as [g, o, k, c].
  int64_t elements() const {
    return desc.groups * desc.outChannels * places * desc.channels;
  }
  int64_t rowOfSums(const Piece &piece, int64_t out) const {
    return ((piece.group * desc.outChannels + piece.outs.first + out) *
            places) *
           desc.channels;
  }

  void addSamples(int64_t sample, const Blocks &blocks, const Piece &piece,
                  int thread, const void *x, const void *y, char *own) const {
    const char *from = offset(x, sample * desc.x[0] + piece.group * desc.x[1] +
                                     piece.channels.first),
               *gradient =
                   offset(y, sample * desc.y[0] + piece.group * desc.y[1] +
                                 piece.outs.first);
    for (int64_t number = 0; number < blocks.count; ++number) {
      Positions block = blocks.get(number);
      const char *operand = from + block.first * input.rowStride() * bytes;
      if (!isPointwise) {
        gatherWindowRows(walk, from,
                         {desc.x[0] * bytes, desc.x[3] * bytes,
                          piece.channels.count * bytes},
                         block, own + windows);
        operand = own + windows;
      }
      multiply(piece.outs.count, piece.channels.count * places, block.count,
               thread, gradient + block.first * output.rowStride() * bytes,
               operand, own + total, own);
    }
  }

  void storeSums(const Piece &piece, const char *sum, char *to) const {
    size_t run = static_cast<size_t>(piece.channels.count * sumBytes());
    for (int64_t out = 0; out < piece.outs.count; ++out)
      for (int64_t place = 0; place < places; ++place, sum += run)
        std::memcpy(to + (rowOfSums(piece, out) + place * desc.channels +
                          piece.channels.first) *
                             sumBytes(),
                    sum, run);
  }

  /// Writes [o, k, c] of a piece into the weight.
  void storeWeight(const Piece &piece, const char *sum, void *w) const {
    for (int64_t out = 0; out < piece.outs.count; ++out)
      for (int64_t place = 0; place < places; ++place)
        for (int64_t channel = 0; channel < piece.channels.count;
             ++channel, sum += sumBytes())
          store(sum, 1, addressOf(piece, out, place, channel, w));
  }
  char *addressOf(const Piece &piece, int64_t out, int64_t place,
                  int64_t channel, void *w) const {
    return offset(w, piece.group * desc.w[0] +
                         (piece.outs.first + out) * desc.w[1] +
                         (piece.channels.first + channel) * desc.w[2] +
                         place * desc.w[3]);
  }

  template <class T>
  void addParts(const Piece &piece, const T *parts, void *w) const {
    for (int64_t out = 0; out < piece.outs.count; ++out)
      for (int64_t place = 0; place < places; ++place)
        for (int64_t channel = 0; channel < piece.channels.count; ++channel) {
          const T *sum = parts + rowOfSums(piece, out) + place * desc.channels +
                         piece.channels.first + channel;
          T whole = *sum;
          for (int64_t part = 1; part < samples.count; ++part)
            whole += sum[part * elements()];
          store(&whole, 1, addressOf(piece, out, place, channel, w));
        }
  }

  Side input, output;
  WindowWalk walk;
  bool isOneList;                 ///< rows of all samples lie evenly apart
  std::map<int64_t, Blocks> rows; ///< by the number of samples
  int64_t windows = 0, total = 0;
};

} // namespace

ConvolutionForm
accel::rt::cpu::getChannelsLastForm(const ConvolutionDesc &desc) {
  // Elements of a block of windows, of a block of the weight's gradient in one
  // direction, and of all parts of that gradient.
  constexpr int64_t kWindows = 256 * 1024, kTerms = 1152, kParts = 4 << 20;
  // Rows of a block, chunks that keep the threads of a large machine busy, and
  // blocks of channels below which products are too small.
  constexpr int64_t kFewestRows = 128, kRows = 512, kChunks = 16;
  constexpr int64_t kFewest = 64;
  int64_t places = ConvolutionDesc::count(desc.window);
  auto halve = [](int64_t size) { return roundUp(ceilDiv(size, 2), 16); };
  ConvolutionForm form{kRows, desc.channels, desc.outChannels, 1};
  if (multipliesWindows(desc)) {
    bool forward = desc.kind == ConvolutionKind::Forward;
    int64_t rows = desc.batch *
                   ConvolutionDesc::count(forward ? desc.out : desc.in),
            terms = places * (forward ? desc.channels : desc.outChannels);
    int64_t &made = forward ? form.outChannels : form.channels;
    int64_t all = made;
    form.columns = std::clamp(kWindows / terms / 16 * 16, kFewestRows, kRows);
    auto chunks = [&] {
      return desc.groups * ceilDiv(rows, form.columns) * ceilDiv(all, made);
    };
    while (form.columns > kFewestRows && chunks() < kChunks)
      form.columns = std::max(kFewestRows, halve(form.columns));
    while (made > kFewest && chunks() < kChunks)
      made = std::max(kFewest, halve(made));
    return form;
  }
  if (desc.kind == ConvolutionKind::InputGrad)
    return form;
  form.channels =
      std::min(desc.channels, std::max<int64_t>(16, kTerms / places / 16 * 16));
  form.outChannels = std::min(desc.outChannels, kTerms / 4);
  int64_t elements = desc.groups * desc.outChannels * desc.channels * places;
  auto chunks = [&] {
    return desc.groups * ceilDiv(desc.channels, form.channels) *
           ceilDiv(desc.outChannels, form.outChannels);
  };
  int64_t parts = std::clamp<int64_t>(
      std::min(ceilDiv(kChunks, chunks()), kParts / elements), 1, desc.batch);
  form.samples = ceilDiv(desc.batch, parts);
  parts = ceilDiv(desc.batch, form.samples);
  while (form.outChannels > kFewest && chunks() * parts < kChunks)
    form.outChannels = std::max(kFewest, halve(form.outChannels));
  while (form.channels * places > 2 * kFewest && form.channels > 16 &&
         chunks() * parts < kChunks)
    form.channels = halve(form.channels);
  return form;
}

Status accel::rt::cpu::createChannelsLast(const ConvolutionDesc &desc,
                                          const ConvolutionForm &form,
                                          int threads,
                                          std::unique_ptr<Convolution> &made) {
  if (multipliesWindows(desc))
    return makeConvolution<WindowProduct>(desc, form, threads, made);
  if (desc.kind == ConvolutionKind::InputGrad)
    return makeConvolution<StridedInputGrad>(desc, form, threads, made);
  return makeConvolution<WindowWeightGrad>(desc, form, threads, made);
}
