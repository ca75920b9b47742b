// Convolutions on the CPU as matrix products of windows: the elements of a
// block of windows are gathered into the thread's scratch (im2col, Chellapilla
// et al., 2006), a block at a time, so that they stay in cache and a step's
// memory does not grow with the window; products are those of Gemm.h, in all of
// its types. Tensors have channels first, with all positions of one channel
// together, or last, with all channels of one position together: there windows
// are copied channels at a time, a block may go over several samples, and a
// window of one element is no window at all.

#ifndef ACCEL_RT_DEVICE_CPU_GEMM_CONVOLUTION_H
#define ACCEL_RT_DEVICE_CPU_GEMM_CONVOLUTION_H

#include "Device/CPU/Gemm/Gemm.h"

#include <array>

namespace accel::rt::cpu {

/// Which of the three tensors is computed from the others.
enum class ConvolutionKind { Forward, InputGrad, WeightGrad };

/// y[n, g, o, p] = Σ x[n, g, c, p · stride + k · dilation - low] · w[g, o, c,
/// k], of three dimensions of space, some of them of size 1. Strides of tensors
/// count elements; positions of x and of y lie evenly apart, as places of the
/// weight do.
struct ConvolutionDesc {
  using Space = std::array<int64_t, 3>;

  ConvolutionKind kind = ConvolutionKind::Forward;
  GemmType type = GemmType::F32;
  int64_t batch = 1, groups = 1, channels = 1, outChannels = 1;
  Space in{1, 1, 1}, window{1, 1, 1}, out{1, 1, 1};
  Space stride{1, 1, 1}, dilation{1, 1, 1}, low{0, 0, 0};
  /// Strides of samples, groups, channels and positions.
  std::array<int64_t, 4> x{}, y{};
  /// Strides of groups, channels of y, channels of x and places.
  std::array<int64_t, 4> w{};
  /// Whether channels come last in x and y: those of a group follow each other.
  bool channelsLast = false;

  /// Takes the strides of three views [n, g, c, space…], of `dims` dimensions
  /// of space, and says whether some form reads tensors that lie like that.
  /// Requires the kind and all sizes.
  bool layOut(const int64_t *ofX, const int64_t *ofW, const int64_t *ofY,
              size_t dims);

  static int64_t count(const Space &space) {
    return space[0] * space[1] * space[2];
  }
  /// Whether each window is one element, which is the position's own.
  bool isPointwise() const;
};

/// How the work is cut: `columns` positions in a block, and in a chunk
/// `channels` of x and `outChannels` of y where these are not summed over, and
/// `samples` that read one piece of the weight, or of the weight's gradient are
/// summed on their own.
struct ConvolutionForm {
  int64_t columns = 1, channels = 1, outChannels = 1, samples = 1;
};
/// Blocks that stay in the second level of cache, and enough chunks for the
/// threads of a machine. It does not depend on how many there are: nor do bits.
ConvolutionForm getDefaultForm(const ConvolutionDesc &desc);

/// A prepared convolution; used as a Gemm is.
class Convolution {
public:
  /// Errors: types or sizes that no product serves.
  static Status create(const ConvolutionDesc &desc, const ConvolutionForm &form,
                       int threads, std::unique_ptr<Convolution> &made);
  virtual ~Convolution();

  virtual int64_t chunks() const = 0;
  /// Bytes of scratch that one thread needs; a multiple of 64.
  virtual int64_t scratchBytes() const = 0;
  /// Computes a chunk on the calling thread: a and b, which are read, are x and
  /// w of the forward, y and w of the input's gradient, x and y of the
  /// weight's; c is the third; `shared` has sharedBytes(), for all threads.
  virtual void run(int64_t chunk, int thread, const void *a, const void *b,
                   void *c, void *shared, void *scratch) const = 0;

  /// Bytes of scratch that all threads share; a multiple of 64.
  virtual int64_t sharedBytes() const { return 0; }
  /// Where some are: what is left to do when all chunks are done, in chunks of
  /// its own.
  virtual int64_t lastChunks() const { return 0; }
  virtual void runLast(int64_t /*chunk*/, const void * /*shared*/,
                       void * /*c*/) const {}
};

} // namespace accel::rt::cpu

#endif // ACCEL_RT_DEVICE_CPU_GEMM_CONVOLUTION_H
