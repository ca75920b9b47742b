// f32 products on matrix units that multiply bf16 (Intel AMX), as exact as f32
// arithmetic. Each operand is split into three bf16 pieces whose sum it is to
// the last bit; of the nine products of pieces, the six that an f32 can tell
// are summed in f32. Method: Henry, Tang and Heinecke,
// "Leveraging the bfloat16 Artificial Intelligence Datatype For
// Higher-Precision Computations", ARITH 2019 (BF16_BF16_F32_X6 in XLA).
//
// Where it differs from f32 arithmetic: an operand that is infinite, or beyond
// the largest bf16 (3.39e38), gives NaN instead of infinities, and pieces below
// 2⁻¹²⁶ count as zeros.

#include "Device/CPU/Gemm/Bf16x6Pack.h"
#include "Device/CPU/Gemm/GemmForms.h"

#include <cpuid.h>
#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>

using namespace accel::rt;
using namespace accel::rt::cpu;
using namespace accel::rt::cpu::bf16x6;

#define ACCEL_AMX __attribute__((target("amx-tile,amx-bf16")))

namespace {
/// Inner elements that are split at a time: as many as fit, since c is read and
/// written again each time, but not so many that b displaces a in the cache.
constexpr int64_t kMinDepth = 512, kMaxDepth = 1024;
/// Bytes of the split rows of a, which are read again for every 32 columns of
/// b: most of the second level of cache.
constexpr int64_t kSplitBytes = 5 << 18;
/// Rows and columns of the block of c that stays in registers.
constexpr int64_t kBlock = 2 * kLanes;
/// Columns of b that are split at a time.
constexpr int64_t kPanel = 2 * kBlock;

/// The operand of LDTILECFG.
struct alignas(64) TileConfig {
  uint8_t palette = 1, startRow = 0, reserved[14] = {};
  uint16_t columnBytes[16] = {};
  uint8_t rows[16] = {};
};

ACCEL_AMX void configureTiles() {
  TileConfig config;
  for (int tile = 0; tile < 8; ++tile) {
    config.columnBytes[tile] = 64;
    config.rows[tile] = kLanes;
  }
  _tile_loadconfig(&config);
}

/// c[32][32] = start + Σ a · b over `steps` tiles of 32 inner elements. a and b
/// are two lines of tiles [step][piece], one after the other. Strides count
/// elements; that of `start` may be 0.
ACCEL_AMX void multiplyBlock(int64_t steps, const Tile *a, const Tile *b,
                             const float *start, int64_t startStride, float *c,
                             int64_t cStride) {
  constexpr int64_t row = kLanes * sizeof(float);
  startStride *= sizeof(float);
  cStride *= sizeof(float);
  auto *from = reinterpret_cast<const char *>(start);
  _tile_loadd(0, from, startStride);
  _tile_loadd(1, from + row, startStride);
  _tile_loadd(2, from + kLanes * startStride, startStride);
  _tile_loadd(3, from + kLanes * startStride + row, startStride);
  const Tile *a1 = a + kPieces * steps, *b1 = b + kPieces * steps;
  for (int64_t step = 0; step < steps; ++step) {
    // In an order that loads one operand for each product.
#define ACCEL_LOAD_A(piece)                                                    \
  _tile_loadd(4, a[piece].bits, 64);                                           \
  _tile_loadd(5, a1[piece].bits, 64);
#define ACCEL_LOAD_B(piece)                                                    \
  _tile_loadd(6, b[piece].bits, 64);                                           \
  _tile_loadd(7, b1[piece].bits, 64);
#define ACCEL_MULTIPLY                                                         \
  _tile_dpbf16ps(0, 4, 6);                                                     \
  _tile_dpbf16ps(1, 4, 7);                                                     \
  _tile_dpbf16ps(2, 5, 6);                                                     \
  _tile_dpbf16ps(3, 5, 7);
    ACCEL_LOAD_A(0)
    ACCEL_LOAD_B(2)
    ACCEL_MULTIPLY
    ACCEL_LOAD_B(1)
    ACCEL_MULTIPLY
    ACCEL_LOAD_A(1)
    ACCEL_MULTIPLY
    ACCEL_LOAD_B(0)
    ACCEL_MULTIPLY
    ACCEL_LOAD_A(2)
    ACCEL_MULTIPLY
    ACCEL_LOAD_A(0)
    ACCEL_MULTIPLY
#undef ACCEL_MULTIPLY
#undef ACCEL_LOAD_B
#undef ACCEL_LOAD_A
    a += kPieces, a1 += kPieces, b += kPieces, b1 += kPieces;
  }
  auto *to = reinterpret_cast<char *>(c);
  _tile_stored(0, to, cStride);
  _tile_stored(1, to + row, cStride);
  _tile_stored(2, to + kLanes * cStride, cStride);
  _tile_stored(3, to + kLanes * cStride + row, cStride);
}

ACCEL_AMX void releaseTiles() { _tile_release(); }

int64_t divideUp(int64_t size, int64_t part) {
  return (size + part - 1) / part;
}
int64_t alignUp(int64_t size, int64_t part) {
  return divideUp(size, part) * part;
}

/// What one thread works with.
struct Scratch {
  Tile *a, *b;  ///< the split rows and columns
  float *block; ///< [kBlock][kBlock]: an edge of c
  float *bias;  ///< [kPanel]
};

class Bf16x6Gemm : public Gemm {
public:
  Bf16x6Gemm(const GemmDesc &desc, const GemmForm &form)
      : prepared(form), grid(desc, form) {
    int64_t fit = kSplitBytes / (kPieces * 2);
    depth = std::clamp(fit / alignUp(grid.rows, kBlock), kMinDepth, kMaxDepth);
    depth = alignUp(divideUp(desc.k, divideUp(desc.k, depth)), kDepth);
    rows = fit / depth / kBlock * kBlock;
    rows = alignUp(divideUp(grid.rows, divideUp(grid.rows, rows)), kBlock);
  }

  const GemmForm &form() const override { return prepared; }
  int64_t chunks() const override { return grid.count; }
  int64_t packedBytes() const override { return 0; }
  Status pack(const void *, void *) const override {
    return Status::error("expected a form that packs");
  }
  int64_t scratchBytes() const override {
    return (countTiles(rows) + countTiles(kPanel)) * sizeof(Tile) +
           (kBlock * kBlock + kPanel) * sizeof(float);
  }

  void run(int64_t index, int, const void *a, const void *b, const void *bias,
           void *c, void *scratchpad) const override {
    Chunk chunk = grid.get(index);
    const GemmDesc &desc = grid.desc;
    Scratch own;
    own.a = static_cast<Tile *>(scratchpad);
    own.b = own.a + countTiles(rows);
    own.block = reinterpret_cast<float *>(own.b + countTiles(kPanel));
    own.bias = own.block + kBlock * kBlock;
    configureTiles();
    for (int64_t inner = 0; inner < desc.k; inner += depth) {
      int64_t some = std::min(depth, desc.k - inner);
      for (int64_t row = 0; row < chunk.rows; row += rows) {
        int64_t height = std::min(rows, chunk.rows - row);
        split(Side::Rows,
              static_cast<const float *>(a) + chunk.a + row * desc.aRow +
                  inner * desc.aCol,
              desc.aRow, desc.aCol, alignUp(height, kBlock), height, some,
              own.a);
        for (int64_t column = 0; column < chunk.columns; column += kPanel) {
          int64_t width = std::min(kPanel, chunk.columns - column);
          split(Side::Columns,
                static_cast<const float *>(b) + chunk.b + inner * desc.bRow +
                    column * desc.bCol,
                desc.bCol, desc.bRow, alignUp(width, kBlock), width, some,
                own.b);
          const float *shift = nullptr;
          if (desc.bias && inner == 0) {
            std::fill_n(own.bias, kPanel, 0.0f);
            std::copy_n(static_cast<const float *>(bias) + chunk.bias + column,
                        width, own.bias);
            shift = own.bias;
          }
          multiplyPanel(own, divideUp(some, kDepth), height, width, shift,
                        desc.accumulate || inner > 0,
                        static_cast<float *>(c) + chunk.c + row * desc.cRow +
                            column);
        }
      }
    }
    releaseTiles();
  }

private:
  /// Tiles of `lanes` rows of a, or columns of b, at the full depth.
  int64_t countTiles(int64_t lanes) const {
    return lanes / kLanes * (depth / kDepth) * kPieces;
  }

  /// `height` rows and `width` columns of c, from the split rows and columns.
  void multiplyPanel(const Scratch &own, int64_t steps, int64_t height,
                     int64_t width, const float *bias, bool accumulate,
                     float *c) const {
    int64_t stride = grid.desc.cRow, tiles = steps * kPieces;
    for (int64_t row = 0; row < height; row += kBlock)
      for (int64_t column = 0; column < width; column += kBlock) {
        const Tile *a = own.a + row / kLanes * tiles;
        const Tile *b = own.b + column / kLanes * tiles;
        const float *shift = bias ? bias + column : nullptr;
        float *target = c + row * stride + column;
        int64_t some = std::min(kBlock, height - row);
        int64_t wide = std::min(kBlock, width - column);
        static const float zeros[kBlock] = {};
        if (some == kBlock && wide == kBlock && !(bias && accumulate)) {
          if (accumulate)
            multiplyBlock(steps, a, b, target, stride, target, stride);
          else
            multiplyBlock(steps, a, b, bias ? shift : zeros, 0, target, stride);
          continue;
        }
        // An edge of c, or what tiles cannot load at once.
        for (int64_t i = 0; i < some; ++i)
          for (int64_t j = 0; j < wide; ++j)
            own.block[i * kBlock + j] =
                (accumulate ? target[i * stride + j] : 0) +
                (bias ? shift[j] : 0);
        multiplyBlock(steps, a, b, own.block, kBlock, own.block, kBlock);
        for (int64_t i = 0; i < some; ++i)
          std::copy_n(own.block + i * kBlock, wide, target + i * stride);
      }
  }

  GemmForm prepared;
  Chunks grid;
  int64_t depth; ///< inner elements split at a time: a multiple of 32
  int64_t rows;  ///< of a split at a time: a multiple of 32
};
} // namespace

bool cpu::hasBf16Tiles() {
  static const bool found = [] {
    unsigned a, b, c, d = 0;
    constexpr unsigned kAmxBf16 = 1u << 22, kAmxTile = 1u << 24;
    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || !(d & kAmxBf16) ||
        !(d & kAmxTile) || !__builtin_cpu_supports("avx512bw"))
      return false;
    // Linux gives a process tile registers when it asks for them.
    constexpr int kRequestPermission = 0x1023, kTileData = 18;
    return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
  }();
  return found;
}

Status cpu::createBf16x6Gemm(const GemmDesc &desc, const GemmForm &form,
                             std::unique_ptr<Gemm> &gemm) {
  if (desc.type != GemmType::F32 || form.packed)
    return Status::error("expected a product of f32 whose b is not packed");
  if ((desc.aRow != 1 && desc.aCol != 1) || (desc.bRow != 1 && desc.bCol != 1))
    return Status::error("expected matrices with rows or columns without gaps");
  if (!hasBf16Tiles())
    return Status::error("expected a machine with AMX, for which this product "
                         "was compiled");
  gemm = std::make_unique<Bf16x6Gemm>(desc, form);
  return Status();
}
