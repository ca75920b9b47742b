// Products of types that no library here multiplies (f16 and the 8-bit ones):
// blocks of both operands are widened into scratch, where they stay in the
// caches while a library's product of the wider type multiplies them. Sums are
// f32, over blocks of the inner dimension too, and are rounded once.

#include "Device/CPU/Gemm/ConvertRows.h"
#include "Device/CPU/Gemm/GemmForms.h"

#include <cstring>
#include <map>
#include <tuple>

using namespace accel::rt;
using namespace accel::rt::cpu;

namespace {
/// What a block has at most: a row of c's block, of its columns, and of the
/// inner dimension.
constexpr int64_t kRows = 256, kColumns = 512, kDepth = 1024;

int64_t alignUp(int64_t bytes) { return (bytes + 63) / 64 * 64; }

/// A block of an operand and how it lies, in elements: a stride is 1,
/// or of a size of 1.
struct Operand {
  int64_t rows, columns, rowStride, columnStride;

  bool isByRows() const { return columnStride == 1 || columns == 1; }
  /// Of the widened one, without gaps in the same order.
  int64_t getWideRow() const { return isByRows() ? columns : 1; }
  int64_t getWideColumn() const { return isByRows() ? 1 : rows; }

  void widen(GemmType type, const char *from, void *to) const {
    int64_t lines = isByRows() ? rows : columns,
            length = isByRows() ? columns : rows,
            stride = isByRows() ? rowStride : columnStride;
    auto *wide = static_cast<char *>(to);
    for (int64_t line = 0; line < lines; ++line)
      widenRow(type, from + line * stride * getBytes(type), length,
               wide + line * length * getBytes(getWideType(type)));
  }
};

class WidenedGemm : public Gemm {
public:
  WidenedGemm(const GemmDesc &desc, const GemmForm &form)
      : prepared(form), grid(desc, form), wide(getWideType(desc.type)) {}

  const GemmForm &form() const override { return prepared; }
  int64_t chunks() const override { return grid.count; }
  int64_t scratchBytes() const override { return scratch; }
  int64_t packedBytes() const override { return 0; }
  Status pack(const void *, void *) const override {
    return Status::error("expected a form that packs, found one that widens");
  }

  Status prepare(int threads) {
    int64_t rows = std::min(grid.rows, kRows),
            columns = std::min(grid.columns, kColumns),
            depth = std::min(grid.desc.k, kDepth);
    leftAt = 0;
    rightAt = alignUp(rows * depth * getBytes(wide));
    sumsAt = rightAt + alignUp(depth * columns * getBytes(wide));
    lineAt = sumsAt + alignUp(rows * columns * 4);
    innerAt = lineAt + alignUp(columns * 4);
    scratch = innerAt;
    const GemmDesc &desc = grid.desc;
    int64_t lastRows = desc.m - (grid.rowChunks - 1) * grid.rows;
    int64_t lastColumns = desc.n - (grid.columnChunks - 1) * grid.columns;
    for (int64_t m : pieces({grid.rows, lastRows}, kRows))
      for (int64_t n : pieces({grid.columns, lastColumns}, kColumns))
        for (int64_t k : pieces({desc.k}, kDepth))
          for (bool adds : {false, true})
            if (adds ? desc.k > kDepth : k == depth)
              ACCEL_RT_RETURN_IF_ERROR(prepare({m, n, k, adds}, threads));
    return Status();
  }

  void run(int64_t index, int thread, const void *aData, const void *bData,
           const void *biasData, void *cData, void *scratchpad) const override {
    const GemmDesc &desc = grid.desc;
    Chunk chunk = grid.get(index);
    int64_t in = getBytes(desc.type);
    auto *a = static_cast<const char *>(aData);
    auto *b = static_cast<const char *>(bData);
    auto *bias = static_cast<const char *>(biasData);
    auto *own = static_cast<char *>(scratchpad);
    auto *sums = reinterpret_cast<float *>(own + sumsAt);
    for (int64_t row = 0; row < chunk.rows; row += kRows)
      for (int64_t column = 0; column < chunk.columns; column += kColumns) {
        int64_t rows = std::min(kRows, chunk.rows - row),
                columns = std::min(kColumns, chunk.columns - column);
        for (int64_t p = 0; p < desc.k; p += kDepth) {
          int64_t depth = std::min(kDepth, desc.k - p);
          Operand{rows, depth, desc.aRow, desc.aCol}.widen(
              desc.type, a + (chunk.a + row * desc.aRow + p * desc.aCol) * in,
              own + leftAt);
          Operand{depth, columns, desc.bRow, desc.bCol}.widen(
              desc.getTypeOfB(),
              b + (chunk.b + p * desc.bRow + column * desc.bCol) * in,
              own + rightAt);
          inner.at({rows, columns, depth, p > 0})
              ->run(0, thread, own + leftAt, own + rightAt, nullptr, sums,
                    own + innerAt);
        }
        for (int64_t i = 0; i < rows; ++i)
          store(sums + i * columns, columns,
                bias ? bias + (chunk.bias + column) *
                                  getBytes(desc.getTypeOfBias())
                     : nullptr,
                static_cast<char *>(cData) +
                    (chunk.c + (row + i) * desc.cRow + column) *
                        getBytes(desc.outType),
                reinterpret_cast<float *>(own + lineAt));
      }
  }

private:
  struct Size {
    int64_t m, n, k;
    bool adds;
    bool operator<(const Size &other) const {
      return std::tie(m, n, k, adds) <
             std::tie(other.m, other.n, other.k, other.adds);
    }
  };

  /// The sizes of pieces of at most `most` that sizes are cut into.
  static std::vector<int64_t> pieces(std::vector<int64_t> sizes, int64_t most) {
    std::vector<int64_t> found;
    for (int64_t size : sizes) {
      if (size > most)
        found.push_back(most);
      if (size % most != 0)
        found.push_back(size % most);
      else if (size <= most)
        found.push_back(size);
    }
    return found;
  }

  Status prepare(const Size &size, int threads) {
    std::unique_ptr<Gemm> &gemm = inner[size];
    if (gemm)
      return Status();
    const GemmDesc &desc = grid.desc;
    Operand a{size.m, size.k, desc.aRow, desc.aCol},
        b{size.k, size.n, desc.bRow, desc.bCol};
    GemmDesc made;
    made.type = wide;
    made.outType = GemmType::F32;
    made.m = size.m, made.n = size.n, made.k = size.k;
    made.aRow = a.getWideRow(), made.aCol = a.getWideColumn();
    made.bRow = b.getWideRow(), made.bCol = b.getWideColumn();
    made.cRow = size.n;
    made.accumulate = size.adds;
    ACCEL_RT_RETURN_IF_ERROR(Gemm::create(made, {}, threads, gemm));
    scratch = std::max(scratch, innerAt + gemm->scratchBytes());
    return Status();
  }

  /// A row of c: the sums, what is added to them, rounded. `line` holds what is
  /// widened for that.
  void store(float *sums, int64_t count, const void *bias, char *c,
             float *line) const {
    const GemmDesc &desc = grid.desc;
    auto add = [&](GemmType type, const void *terms) {
      if (type != GemmType::F32) {
        widenRowToSums(type, terms, count, line);
        terms = line;
      }
      auto *numbers = static_cast<const float *>(terms);
      for (int64_t i = 0; i < count; ++i)
        sums[i] += numbers[i];
    };
    if (bias)
      add(desc.getTypeOfBias(), bias);
    if (desc.accumulate)
      add(desc.outType, c);
    if (desc.outType == GemmType::F32)
      std::memcpy(c, sums, static_cast<size_t>(count) * 4);
    else
      narrowRow(desc.outType, sums, count, c);
  }

  GemmForm prepared;
  Chunks grid;
  GemmType wide;
  std::map<Size, std::unique_ptr<Gemm>> inner;
  int64_t leftAt = 0, rightAt = 0, sumsAt = 0, lineAt = 0, innerAt = 0,
          scratch = 0;
};
} // namespace

Status cpu::createWidenedGemm(const GemmDesc &desc, const GemmForm &form,
                              int threads, std::unique_ptr<Gemm> &gemm) {
  if (form.packed)
    return Status::error("expected a product that a library computes, as its "
                         "form packs weights");
  auto made = std::make_unique<WidenedGemm>(desc, form);
  ACCEL_RT_RETURN_IF_ERROR(made->prepare(threads));
  gemm = std::move(made);
  return Status();
}
