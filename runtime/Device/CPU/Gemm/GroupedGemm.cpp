// Products of pieces of groups: prepared for each size that a piece may have
// and for both widths that a chunk of columns may have.

#include "Device/CPU/Gemm/GroupedGemm.h"

#include <algorithm>
#include <cstring>

namespace accel::rt::cpu {
namespace {

int64_t roundUp(int64_t bytes) { return (bytes + 63) / 64 * 64; }

/// Columns [first, first + count) of c.
struct Block {
  int64_t first, count;
};

/// What both kinds have: columns in blocks, and panels of rows in scratch.
class Panels : public GroupedGemm {
public:
  Panels(const GroupedGemmDesc &desc, const GroupedGemmForm &form)
      : GroupedGemm(desc), desc(desc), in(getBytes(desc.type)),
        out(getBytes(desc.outType)),
        width(form.chunkColumns > 0 ? std::min(form.chunkColumns, desc.n)
                                    : desc.n),
        blocks((desc.n + width - 1) / width) {}

protected:
  Block getBlock(int64_t number) const {
    int64_t first = number * width;
    return {first, std::min(width, desc.n - first)};
  }
  /// Prepares one product for each size of a piece and width of a block.
  template <class Describe>
  Status prepare(std::vector<std::unique_ptr<Gemm>> &gemms, int threads,
                 Describe &&describe) {
    for (int64_t columns : {width, getBlock(blocks - 1).count})
      for (int64_t rows : groups.sizes()) {
        ACCEL_RT_RETURN_IF_ERROR(Gemm::create(describe(rows, columns), {},
                                              threads, gemms.emplace_back()));
        inner = std::max(inner, gemms.back()->scratchBytes());
      }
    return Status();
  }
  const Gemm &find(const std::vector<std::unique_ptr<Gemm>> &gemms,
                   const Block &block, const RowGroups::Piece &piece) const {
    size_t narrow = block.count == width ? 0 : groups.sizes().size();
    return *gemms[narrow + static_cast<size_t>(piece.size)];
  }
  static void runAll(const Gemm &gemm, int thread, const void *a, const void *b,
                     void *c, void *scratch) {
    for (int64_t chunk = 0; chunk < gemm.chunks(); ++chunk)
      gemm.run(chunk, thread, a, b, /*bias=*/nullptr, c, scratch);
  }
  int64_t mostRows() const { return groups.sizes().back(); }
  /// `bytes` of each of a piece's rows, side by side; zeros behind them.
  void bringTogether(const RowGroups::Piece &piece, const int32_t *rows,
                     const char *from, int64_t stride, int64_t bytes,
                     char *panel) const {
    for (int32_t row = 0; row < piece.count; ++row, panel += bytes)
      std::memcpy(panel, from + rows[piece.first + row] * stride,
                  static_cast<size_t>(bytes));
    int64_t all = groups.sizes()[static_cast<size_t>(piece.size)];
    std::memset(panel, 0, static_cast<size_t>((all - piece.count) * bytes));
  }

  GroupedGemmDesc desc;
  int64_t in, out; ///< bytes of an element
  int64_t width, blocks;
  int64_t inner = 0; ///< bytes of scratch of the products
};

/// A chunk is a block of a piece's columns; the last one clears the rows that
/// are in no group.
class RowsTimesMatrices : public Panels {
public:
  using Panels::Panels;
  Status prepareAll(int threads) {
    return prepare(gemms, threads, [&](int64_t rows, int64_t columns) {
      GemmDesc gemm;
      gemm.type = desc.type, gemm.outType = desc.outType;
      gemm.m = rows, gemm.n = columns, gemm.k = desc.k;
      gemm.aRow = desc.k, gemm.cRow = columns;
      gemm.bRow = desc.bRow, gemm.bCol = desc.bCol;
      return gemm;
    });
  }
  int64_t scratchBytes() const override {
    return roundUp(mostRows() * desc.k * in) +
           roundUp(mostRows() * width * out) + inner;
  }
  int64_t chunks(const void *order) const override {
    return groups.countPieces(order) * blocks +
           (groups.countNone(order) > 0 ? 1 : 0);
  }
  void run(int64_t chunk, int thread, const void *a, const void *b, void *c,
           const void *order, void *scratch) const override {
    auto *to = static_cast<char *>(c);
    if (chunk / blocks == groups.countPieces(order)) {
      const int32_t *none = groups.beginOfNone(order);
      for (int64_t row = 0; row < groups.countNone(order); ++row)
        std::memset(to + none[row] * desc.cRow * out, 0,
                    static_cast<size_t>(desc.n * out));
      return;
    }
    const RowGroups::Piece &piece = groups.pieces(order)[chunk / blocks];
    Block block = getBlock(chunk % blocks);
    const int32_t *rows = groups.rows(order);
    auto *panel = static_cast<char *>(scratch),
         *made = panel + roundUp(mostRows() * desc.k * in),
         *rest = made + roundUp(mostRows() * width * out);
    bringTogether(piece, rows, static_cast<const char *>(a), desc.aRow * in,
                  desc.k * in, panel);
    int64_t matrix = piece.group * desc.bGroup + block.first * desc.bCol;
    runAll(find(gemms, block, piece), thread, panel,
           static_cast<const char *>(b) + matrix * in, made, rest);
    int64_t bytes = block.count * out;
    for (int32_t row = 0; row < piece.count; ++row)
      std::memcpy(to +
                      (rows[piece.first + row] * desc.cRow + block.first) * out,
                  made + row * bytes, static_cast<size_t>(bytes));
  }

private:
  std::vector<std::unique_ptr<Gemm>> gemms;
};

/// A chunk is a block of a group's matrix: the sum of its pieces in their
/// order, whichever thread makes it.
class MatricesOfRows : public Panels {
public:
  using Panels::Panels;
  Status prepareAll(int threads) {
    auto describe = [&](bool adds) {
      return [this, adds](int64_t rows, int64_t columns) {
        GemmDesc gemm;
        gemm.type = desc.type, gemm.outType = desc.outType;
        gemm.m = desc.k, gemm.n = columns, gemm.k = rows;
        gemm.aRow = 1, gemm.aCol = desc.k;
        gemm.bRow = columns, gemm.cRow = desc.cRow;
        gemm.accumulate = adds;
        return gemm;
      };
    };
    if (!desc.accumulate)
      ACCEL_RT_RETURN_IF_ERROR(prepare(first, threads, describe(false)));
    return prepare(further, threads, describe(true));
  }
  int64_t scratchBytes() const override {
    return roundUp(mostRows() * desc.k * in) +
           roundUp(mostRows() * width * in) + inner;
  }
  int64_t chunks(const void *) const override { return desc.groups * blocks; }
  void run(int64_t chunk, int thread, const void *a, const void *b, void *c,
           const void *order, void *scratch) const override {
    int64_t group = chunk / blocks;
    Block block = getBlock(chunk % blocks);
    const int32_t *rows = groups.rows(order);
    auto *lhs = static_cast<char *>(scratch),
         *rhs = lhs + roundUp(mostRows() * desc.k * in),
         *rest = rhs + roundUp(mostRows() * width * in);
    auto *to =
        static_cast<char *>(c) + (group * desc.cGroup + block.first) * out;
    const RowGroups::Piece *begin = groups.beginOfGroup(order, group),
                           *end = groups.beginOfGroup(order, group + 1);
    if (begin == end && !desc.accumulate)
      for (int64_t row = 0; row < desc.k; ++row)
        std::memset(to + row * desc.cRow * out, 0,
                    static_cast<size_t>(block.count * out));
    for (const RowGroups::Piece *piece = begin; piece != end; ++piece) {
      bringTogether(*piece, rows, static_cast<const char *>(a), desc.aRow * in,
                    desc.k * in, lhs);
      bringTogether(*piece, rows,
                    static_cast<const char *>(b) + block.first * in,
                    desc.bRow * in, block.count * in, rhs);
      bool adds = desc.accumulate || piece != begin;
      runAll(find(adds ? further : first, block, *piece), thread, lhs, rhs, to,
             rest);
    }
  }

private:
  std::vector<std::unique_ptr<Gemm>> first, further;
};

template <class Kind>
Status make(const GroupedGemmDesc &desc, const GroupedGemmForm &form,
            int threads, std::unique_ptr<GroupedGemm> &gemm) {
  auto made = std::make_unique<Kind>(desc, form);
  ACCEL_RT_RETURN_IF_ERROR(made->prepareAll(threads));
  gemm = std::move(made);
  return Status();
}

} // namespace

GroupedGemm::~GroupedGemm() = default;

GroupedGemmForm getDefaultForm(const GroupedGemmDesc &desc, int64_t threads) {
  // Narrow products are slower than what a second thread gains.
  constexpr int64_t least = 128;
  int64_t width = (desc.n + threads - 1) / threads;
  width = (std::max(width, least) + 63) / 64 * 64;
  return {width < desc.n ? width : 0};
}

Status GroupedGemm::create(const GroupedGemmDesc &desc,
                           const GroupedGemmForm &form, bool isGradient,
                           int threads, std::unique_ptr<GroupedGemm> &gemm) {
  return isGradient ? make<MatricesOfRows>(desc, form, threads, gemm)
                    : make<RowsTimesMatrices>(desc, form, threads, gemm);
}

} // namespace accel::rt::cpu
