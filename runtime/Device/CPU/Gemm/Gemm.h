// Matrix products on the CPU behind one interface: the few forms that are legal
// on a step's path (no form allocates more than 4 KiB while it runs), each cut
// into chunks that a thread pool executes one thread each. The compiler tries
// the forms and records one in the plan; the runtime prepares and runs it.
//
// f32 and bf16 (sums in f32) are oneDNN's matmul primitive; dnnl_sgemm
// allocates megabytes per call and is not used. Where the machine has units
// that multiply bf16, f32 has a form of our own that uses them and is as exact.
// f16 and the 8-bit types are widened block by block to f32 or bf16, which have
// all of their numbers. f64 is our own loop: it is for proofs.

#ifndef ACCEL_RT_DEVICE_CPU_GEMM_GEMM_H
#define ACCEL_RT_DEVICE_CPU_GEMM_GEMM_H

#include "accel-rt/Status.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace accel::rt::cpu {

enum class GemmType { F32, BF16, F64, F16, F8E4M3FN, F8E5M2 };

/// Keeps products, for the rest of the process, to the instructions of
/// x86-64-v4
/// (`avx512`) or x86-64-v3, whatever else this machine has: a file compiled for
/// one of these levels takes the same scratch and gives the same bits
/// everywhere. Requires that no product was prepared yet, or that it was said
/// before with the same argument.
Status limitInstructions(bool avx512);

/// Whether this machine, and its Linux, multiply bf16 in tiles (Intel AMX), as
/// the form bf16x6 needs. Limits do not change the answer.
bool hasBf16Tiles();

/// Bytes of an element.
int64_t getBytes(GemmType type);

/// c[b…, i, j] = Σ a[b…, i, k] · b[b…, k, j] (+ bias[j]) (+ c[b…, i, j]). All
/// strides count elements; a batch stride of 0 repeats the matrix. One of the
/// two matrix strides of a and b is 1, and that of c's columns. Sizes of 1 have
/// any stride.
struct GemmDesc {
  GemmType type = GemmType::F32;     ///< of a, and of b but for:
  std::optional<GemmType> otherType; ///< of b: an 8-bit one beside another
  GemmType outType =
      GemmType::F32;          ///< of c: as `type`, or f32 of a narrower one
  std::vector<int64_t> batch; ///< sizes of the batch dimensions
  int64_t m = 1, n = 1, k = 1;
  std::vector<int64_t> aBatch, bBatch, cBatch;
  int64_t aRow = 0, aCol = 1, bRow = 0, bCol = 1, cRow = 0;
  bool bias = false, accumulate = false;

  GemmType getTypeOfB() const { return otherType.value_or(type); }
  /// Of the bias: that of operands; of 8-bit ones that of c.
  GemmType getTypeOfBias() const {
    return getBytes(type) == 1 ? outType : type;
  }

  /// The description of a plan.gemm's views: a [b…, M, K], b [b…, K, N] or
  /// [K, N], c [b…, M, N], simplified. Requires those shapes to agree.
  struct Operand {
    std::vector<int64_t> shape, strides;
  };
  static GemmDesc ofViews(GemmType type, GemmType outType, const Operand &a,
                          const Operand &b, const Operand &c, bool bias,
                          bool accumulate);

  /// Folds batch dimensions into m where b has none of them and the strides of
  /// a and c allow it. The product stays the same, the chunks get better.
  void simplify();
};

/// How a product is computed. What the compiler records in a plan.gemm.
struct GemmForm {
  /// b is read in the layout that `Gemm::pack` writes.
  bool packed = false;
  /// Numbers of f32 are multiplied as three bf16 pieces each, in six products.
  bool bf16x6 = false;
  /// Rows and columns of c in a chunk (0: all). Every batch element is a chunk
  /// of its own, at least.
  int64_t chunkRows = 0, chunkColumns = 0;
  /// Where packed: the layout as oneDNN describes it, so that another version
  /// or machine that prefers another one reads the same bytes the same way.
  /// Empty: ask oneDNN, and read the answer from `Gemm::form`.
  std::vector<int64_t> layout;
};

/// A prepared product. It may be run by several threads at once, each with a
/// number of its own.
class Gemm {
public:
  /// Creates everything that running needs, for threads 0 … threads-1. Errors:
  /// strides, types or a layout that no form serves.
  static Status create(const GemmDesc &desc, const GemmForm &form, int threads,
                       std::unique_ptr<Gemm> &gemm);
  virtual ~Gemm();

  /// The form as prepared, its layout filled in.
  virtual const GemmForm &form() const = 0;
  /// Number of chunks. Each may be run on its own, in any order.
  virtual int64_t chunks() const = 0;
  /// Bytes of scratch that one thread needs; a multiple of 64.
  virtual int64_t scratchBytes() const = 0;
  /// Bytes of b as `pack` writes it; 0 if the form does not pack.
  virtual int64_t packedBytes() const = 0;
  /// Writes b (of the strides of the description) into `packed`, aligned to 64.
  virtual Status pack(const void *b, void *packed) const = 0;
  /// Computes a chunk on the calling thread. `b` is the packed b if the form
  /// packs; `bias` may be null without bias; `scratch` has scratchBytes() and
  /// is the thread's own, aligned to 64.
  virtual void run(int64_t chunk, int thread, const void *a, const void *b,
                   const void *bias, void *c, void *scratch) const = 0;
};

} // namespace accel::rt::cpu

#endif // ACCEL_RT_DEVICE_CPU_GEMM_GEMM_H
