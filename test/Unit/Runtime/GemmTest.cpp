// Matrix products in every form against sums in double.

#include "Device/CPU/Gemm/GemmForms.h"

#include "accel-rt/NumberFormat.h"

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <gtest/gtest.h>
#include <random>

using namespace accel::rt;
using namespace accel::rt::cpu;

namespace {
struct Free {
  void operator()(char *data) const { std::free(data); }
};
using Buffer = std::unique_ptr<char, Free>;

Buffer allocate(int64_t bytes) {
  bytes = (bytes + 127) / 64 * 64;
  auto *data = static_cast<char *>(std::aligned_alloc(64, bytes));
  std::memset(data, 0xff, bytes); // NaN wherever nothing is written
  return Buffer(data);
}

const NumberFormat &getFormat(GemmType type) {
  switch (type) {
  case GemmType::F64:
    return kF64;
  case GemmType::F32:
    return kF32;
  case GemmType::BF16:
    return kBF16;
  case GemmType::F16:
    return kF16;
  case GemmType::F8E4M3FN:
    return kF8E4M3FN;
  case GemmType::F8E5M2:
    return kF8E5M2;
  }
  std::abort();
}

double get(GemmType type, const char *data, int64_t index) {
  uint64_t code = 0;
  std::memcpy(&code, data + index * getBytes(type), getBytes(type));
  return decodeNumber(getFormat(type), code);
}

void set(GemmType type, char *data, int64_t index, double value) {
  uint64_t code = encodeNumber(getFormat(type), value);
  std::memcpy(data + index * getBytes(type), &code, getBytes(type));
}

struct GemmCase {
  int64_t m, n, k;
  bool transposeA = false, transposeB = false;
  int64_t padA = 0, padB = 0, padC = 0; ///< elements after each row
  std::vector<int64_t> batch = {};
  bool sharedB = false;
};

int64_t product(const std::vector<int64_t> &sizes) {
  int64_t result = 1;
  for (int64_t size : sizes)
    result *= size;
  return result;
}

/// A batch of matrices with padded rows.
GemmDesc::Operand operand(const std::vector<int64_t> &batch, int64_t rows,
                          int64_t columns, bool transposed, int64_t pad) {
  GemmDesc::Operand made;
  made.shape = batch;
  made.shape.insert(made.shape.end(), {rows, columns});
  int64_t stride = (transposed ? rows : columns) + pad;
  made.strides.assign(made.shape.size(), 0);
  made.strides[batch.size()] = transposed ? 1 : stride;
  made.strides[batch.size() + 1] = transposed ? stride : 1;
  int64_t next = stride * (transposed ? columns : rows);
  for (size_t dim = batch.size(); dim-- > 0;) {
    made.strides[dim] = next;
    next *= batch[dim];
  }
  return made;
}

int64_t offset(const GemmDesc::Operand &operand, int64_t batch, int64_t row,
               int64_t column) {
  size_t dims = operand.shape.size() - 2;
  int64_t result =
      row * operand.strides[dims] + column * operand.strides[dims + 1];
  for (size_t dim = dims; dim-- > 0;) {
    result += batch % operand.shape[dim] * operand.strides[dim];
    batch /= operand.shape[dim];
  }
  return result;
}

int64_t span(const GemmDesc::Operand &operand) {
  int64_t last = 0;
  for (size_t dim = 0; dim < operand.shape.size(); ++dim)
    last += (operand.shape[dim] - 1) * operand.strides[dim];
  return last + 1;
}

void check(const GemmCase &which, GemmType type, GemmType outType,
           const GemmForm &form, bool bias, bool accumulate,
           bool ownLoop = false,
           std::optional<GemmType> otherType = std::nullopt) {
  auto a = operand(which.batch, which.m, which.k, which.transposeA, which.padA);
  auto b = operand(which.sharedB ? std::vector<int64_t>() : which.batch,
                   which.k, which.n, which.transposeB, which.padB);
  auto c = operand(which.batch, which.m, which.n, false, which.padC);
  GemmDesc desc = GemmDesc::ofViews(type, outType, a, b, c, bias, accumulate);
  desc.otherType = otherType;
  GemmType bType = desc.getTypeOfB(), biasType = desc.getTypeOfBias();
  std::unique_ptr<Gemm> gemm;
  Status status = ownLoop ? createLoopGemm(desc, form, gemm)
                          : Gemm::create(desc, form, 2, gemm);
  ASSERT_TRUE(status.ok()) << status.message() << ": " << which.m << "x"
                           << which.n << "x" << which.k << " in chunks of "
                           << form.chunkRows << "x" << form.chunkColumns;

  std::mt19937 engine(3);
  auto next = [&] { return (static_cast<int>(engine() % 17) - 8) / 8.0; };
  Buffer aData = allocate(span(a) * getBytes(type));
  Buffer bData = allocate(span(b) * getBytes(type));
  Buffer biasData = allocate(which.n * getBytes(biasType));
  Buffer cData = allocate(span(c) * getBytes(outType));
  // What lies between rows stays NaN: nobody may read it.
  auto fillMatrix = [&](GemmType kind, char *data,
                        const GemmDesc::Operand &matrix) {
    size_t dims = matrix.shape.size() - 2;
    std::vector<int64_t> batch(matrix.shape.begin(),
                               matrix.shape.begin() + dims);
    for (int64_t which = 0; which < product(batch); ++which)
      for (int64_t row = 0; row < matrix.shape[dims]; ++row)
        for (int64_t column = 0; column < matrix.shape[dims + 1]; ++column)
          set(kind, data, offset(matrix, which, row, column), next());
  };
  fillMatrix(type, aData.get(), a);
  fillMatrix(bType, bData.get(), b);
  for (int64_t j = 0; j < which.n; ++j)
    set(biasType, biasData.get(), j, next());
  if (accumulate)
    fillMatrix(outType, cData.get(), c);
  Buffer before = allocate(span(c) * getBytes(outType));
  std::memcpy(before.get(), cData.get(), span(c) * getBytes(outType));
  Buffer packed = allocate(gemm->packedBytes());
  if (form.packed) {
    // From the layout alone, as the runtime packs at load: without knowing m.
    std::unique_ptr<Gemm> again;
    GemmDesc packing =
        GemmDesc::ofViews(type, type, operand({}, 1, which.k, false, 0), b,
                          operand({}, 1, which.n, false, 0), false, false);
    status = Gemm::create(packing, gemm->form(), 1, again);
    ASSERT_TRUE(status.ok()) << status.message();
    ASSERT_EQ(again->packedBytes(), gemm->packedBytes());
    status = again->pack(bData.get(), packed.get());
    ASSERT_TRUE(status.ok()) << status.message();
  }
  Buffer scratch = allocate(2 * gemm->scratchBytes());
  for (int64_t chunk = gemm->chunks(); chunk-- > 0;) {
    int thread = chunk % 2;
    gemm->run(chunk, thread, aData.get(),
              form.packed ? packed.get() : bData.get(),
              bias ? biasData.get() : nullptr, cData.get(),
              scratch.get() + thread * gemm->scratchBytes());
  }
  double tolerance = outType == GemmType::F32 ? 1e-5
                     : outType == GemmType::F64
                         ? 1e-14
                         : std::ldexp(1, 1 - getFormat(outType).digits());
  for (int64_t batch = 0; batch < product(which.batch); ++batch)
    for (int64_t i = 0; i < which.m; ++i)
      for (int64_t j = 0; j < which.n; ++j) {
        int64_t at = offset(c, batch, i, j);
        double expected = accumulate ? get(outType, before.get(), at) : 0;
        if (bias)
          expected += get(biasType, biasData.get(), j);
        for (int64_t k = 0; k < which.k; ++k)
          expected += get(type, aData.get(), offset(a, batch, i, k)) *
                      get(bType, bData.get(), offset(b, batch, k, j));
        double found = get(outType, cData.get(), at);
        ASSERT_LE(std::abs(found - expected),
                  tolerance * (1 + std::abs(expected)))
            << getFormat(type).name << ": " << which.m << "x" << which.n << "x"
            << which.k << " element " << batch << ", " << i << ", " << j;
      }
}

const std::vector<GemmCase> &cases() {
  static const std::vector<GemmCase> list = {
      {64, 96, 80},
      {33, 70, 45, false, true},
      {50, 66, 31, true, false},
      {17, 19, 23, true, true},
      {40, 72, 64, false, false, 3, 5, 7},
      {40, 72, 64, true, true, 3, 5, 7},
      {1, 70, 40},
      {70, 1, 40},
      {30, 40, 1},
      {24, 32, 16, false, false, 0, 0, 0, {2, 3}},
      {24, 32, 16, false, true, 4, 4, 4, {2, 3}},
      {24, 32, 16, false, false, 0, 0, 0, {5}, true},
      {24, 32, 16, false, false, 2, 0, 2, {5}, true},
  };
  return list;
}

GemmForm form(bool packed, int64_t rows, int64_t columns) {
  GemmForm made;
  made.packed = packed;
  made.chunkRows = rows;
  made.chunkColumns = columns;
  return made;
}
} // namespace

TEST(Gemm, ComputesEveryShapeTypeAndGrid) {
  for (const GemmCase &which : cases())
    for (auto [type, out] : {std::pair(GemmType::F32, GemmType::F32),
                             std::pair(GemmType::BF16, GemmType::BF16),
                             std::pair(GemmType::BF16, GemmType::F32),
                             std::pair(GemmType::F16, GemmType::F16),
                             std::pair(GemmType::F16, GemmType::F32),
                             std::pair(GemmType::F8E4M3FN, GemmType::F32),
                             std::pair(GemmType::F8E5M2, GemmType::F32),
                             std::pair(GemmType::F64, GemmType::F64)})
      for (const GemmForm &how : {form(false, 0, 0), form(false, 16, 0),
                                  form(false, 0, 32), form(false, 25, 48)})
        for (bool more : {false, true})
          check(which, type, out, how, more, more && getBytes(out) > 2);
}

TEST(Gemm, WidensBlocks) {
  // More than a block in each dimension, and in all but one.
  for (const GemmCase &which :
       {GemmCase{257, 33, 1030, true, true, 1, 2, 3}, GemmCase{256, 512, 64},
        GemmCase{3, 1025, 120, false, true}, GemmCase{7, 5, 2048}})
    for (GemmType type : {GemmType::F16, GemmType::F8E4M3FN, GemmType::F8E5M2})
      check(which, type, GemmType::F32, form(false, 0, 0), true, true);
}

TEST(Gemm, MultipliesTwoTypesOfEightBits) {
  for (const GemmCase &which : cases())
    for (bool more : {false, true})
      check(which, GemmType::F8E5M2, GemmType::F32, form(false, 16, 32), more,
            more, /*ownLoop=*/false, GemmType::F8E4M3FN);
  GemmDesc desc;
  desc.type = GemmType::F16;
  desc.otherType = GemmType::F8E5M2;
  std::unique_ptr<Gemm> gemm;
  EXPECT_EQ(Gemm::create(desc, {}, 1, gemm).message(),
            "expected operands of one type, or of 8 bits");
}

TEST(Gemm, ComputesWhereOneDnnHasNoForm) {
  for (const GemmCase &which : cases())
    for (auto [type, out] : {std::pair(GemmType::F32, GemmType::F32),
                             std::pair(GemmType::BF16, GemmType::BF16),
                             std::pair(GemmType::BF16, GemmType::F32)})
      for (bool more : {false, true})
        check(which, type, out, form(false, 20, 48), more,
              more && out != GemmType::BF16, /*ownLoop=*/true);
  // More inner elements than a strip has.
  for (GemmType type : {GemmType::F32, GemmType::F64})
    check({13, 21, 600}, type, type, form(false, 0, 0), true, true, true);
}

TEST(Gemm, ComputesWithPackedWeights) {
  // Where oneDNN has blocked weights: not on CPUs without AVX-512, nor of bf16
  // on those that do not multiply it.
  std::vector<GemmType> types;
  for (GemmType type : {GemmType::F32, GemmType::BF16}) {
    std::unique_ptr<Gemm> gemm;
    GemmDesc desc;
    desc.type = type;
    desc.m = desc.n = desc.k = desc.aRow = desc.bRow = desc.cRow = 64;
    if (Gemm::create(desc, form(true, 0, 0), 1, gemm).ok())
      types.push_back(type);
  }
  if (types.empty())
    GTEST_SKIP() << "no packed form on this machine";
  for (const GemmCase &which : cases()) {
    // oneDNN has no blocked product of one column.
    if ((!which.batch.empty() && !which.sharedB) || which.n == 1)
      continue;
    for (GemmType type : types) {
      if (type == GemmType::BF16 && which.transposeA)
        continue; // nor one of transposed bf16
      for (const GemmForm &how : {form(true, 0, 0), form(true, 16, 0),
                                  form(true, 0, 64), form(true, 20, 48)})
        for (bool more : {false, true})
          check(which, type, GemmType::F32, how, more, more);
    }
  }
}

TEST(Gemm, ComputesInBf16Pieces) {
  if (!hasBf16Tiles())
    GTEST_SKIP() << "no tiles of bf16 on this machine";
  std::vector<GemmCase> more = cases();
  // Vectors out of matrices: the stride of a size of 1 says nothing.
  more.push_back({1, 40, 70, true, false, 2, 0, 0});
  more.push_back({40, 1, 70, false, true, 0, 0, 5});
  more.push_back({40, 1, 70, false, false, 0, 2, 0});
  // More than is split at a time: inner elements, rows, columns.
  more.push_back({70, 100, 1100, false, true, 3, 5, 7});
  more.push_back({900, 40, 520, true, false, 4, 8, 0});
  for (const GemmCase &which : more)
    for (GemmForm how :
         {form(false, 0, 0), form(false, 25, 48), form(false, 32, 64)}) {
      how.bf16x6 = true;
      for (bool bias : {false, true})
        for (bool accumulate : {false, true})
          check(which, GemmType::F32, GemmType::F32, how, bias, accumulate);
    }
}

namespace {
/// Numbers with significands of all bits, and exponents from -spread to spread.
std::vector<float> makeNumbers(int64_t count, int spread, int seed) {
  std::mt19937 engine(seed);
  std::vector<float> numbers(count);
  for (float &number : numbers) {
    uint32_t bits = (engine() & 0x807fffff) |
                    (127 + engine() % (2 * spread + 1) - spread) << 23;
    std::memcpy(&number, &bits, 4);
  }
  return numbers;
}

GemmDesc describeDense(int64_t m, int64_t n, int64_t k, GemmType type) {
  return GemmDesc::ofViews(type, GemmType::F32, operand({}, m, k, false, 0),
                           operand({}, k, n, false, 0),
                           operand({}, m, n, false, 0), false, false);
}

template <class T>
std::vector<float> multiply(const Gemm &gemm, const GemmDesc &desc,
                            const std::vector<T> &a, const std::vector<T> &b) {
  std::vector<float> c(desc.m * desc.n);
  Buffer scratch = allocate(gemm.scratchBytes());
  for (int64_t chunk = 0; chunk < gemm.chunks(); ++chunk)
    gemm.run(chunk, 0, a.data(), b.data(), nullptr, c.data(), scratch.get());
  return c;
}
} // namespace

TEST(Gemm, IsAsExactInBf16PiecesAsF32Arithmetic) {
  if (!hasBf16Tiles())
    GTEST_SKIP() << "no tiles of bf16 on this machine";
  for (int spread : {0, 3, 20})
    for (int64_t k : {32, 700}) {
      GemmDesc desc = describeDense(64, 64, k, GemmType::F32);
      GemmForm pieces;
      pieces.bf16x6 = true;
      std::unique_ptr<Gemm> split, loop;
      ASSERT_TRUE(Gemm::create(desc, pieces, 1, split).ok());
      ASSERT_TRUE(createLoopGemm(desc, GemmForm(), loop).ok());
      std::vector<float> a = makeNumbers(64 * k, spread, 1),
                         b = makeNumbers(k * 64, spread, 2);
      std::vector<float> found = multiply(*split, desc, a, b),
                         usual = multiply(*loop, desc, a, b);
      // Against the sums of magnitudes, which bound what rounding can do.
      double foundError = 0, usualError = 0;
      for (int64_t i = 0; i < 64; ++i)
        for (int64_t j = 0; j < 64; ++j) {
          double exact = 0, size = 0;
          for (int64_t q = 0; q < k; ++q) {
            double term = double(a[i * k + q]) * b[q * 64 + j];
            exact += term;
            size += std::abs(term);
          }
          foundError += std::pow((found[i * 64 + j] - exact) / size, 2);
          usualError += std::pow((usual[i * 64 + j] - exact) / size, 2);
        }
      EXPECT_LE(std::sqrt(foundError), 1.1 * std::sqrt(usualError))
          << "spread " << spread << ", " << k << " terms";
    }
}

TEST(Gemm, KeepsNaNsInBf16Pieces) {
  if (!hasBf16Tiles())
    GTEST_SKIP() << "no tiles of bf16 on this machine";
  GemmDesc desc = describeDense(20, 24, 40, GemmType::F32);
  GemmForm pieces;
  pieces.bf16x6 = true;
  std::unique_ptr<Gemm> gemm;
  ASSERT_TRUE(Gemm::create(desc, pieces, 1, gemm).ok());
  // Quiet and signalling, of either sign, and infinities.
  for (uint32_t bits : {0x7fc00000u, 0x7fffffffu, 0xffffffffu, 0x7f800001u,
                        0xffc00000u, 0x7f800000u, 0xff800000u}) {
    float special;
    std::memcpy(&special, &bits, 4);
    std::vector<float> a = makeNumbers(20 * 40, 3, 3),
                       b = makeNumbers(40 * 24, 3, 4);
    std::vector<float> inA = a, inB = b;
    inA[7 * 40 + 33] = special;
    inB[9 * 24 + 21] = special;
    std::vector<float> rows = multiply(*gemm, desc, inA, b);
    std::vector<float> columns = multiply(*gemm, desc, a, inB);
    for (int64_t i = 0; i < 20; ++i)
      for (int64_t j = 0; j < 24; ++j) {
        EXPECT_EQ(std::isfinite(rows[i * 24 + j]), i != 7);
        EXPECT_EQ(std::isfinite(columns[i * 24 + j]), j != 21);
      }
  }
}

TEST(Gemm, SharesTheTilesWithOneDnn) {
  if (!hasBf16Tiles())
    GTEST_SKIP() << "no tiles of bf16 on this machine";
  GemmForm pieces;
  pieces.bf16x6 = true;
  GemmDesc wide = describeDense(48, 80, 96, GemmType::F32);
  GemmDesc narrow = describeDense(48, 80, 96, GemmType::BF16);
  std::unique_ptr<Gemm> ours, theirs;
  ASSERT_TRUE(Gemm::create(wide, pieces, 1, ours).ok());
  ASSERT_TRUE(Gemm::create(narrow, GemmForm(), 1, theirs).ok());
  std::vector<float> a = makeNumbers(48 * 96, 2, 5),
                     b = makeNumbers(96 * 80, 2, 6);
  std::vector<uint16_t> a16(48 * 96), b16(96 * 80);
  for (size_t i = 0; i < a16.size(); ++i)
    std::memcpy(&a16[i], reinterpret_cast<const char *>(&a[i]) + 2, 2);
  for (size_t i = 0; i < b16.size(); ++i)
    std::memcpy(&b16[i], reinterpret_cast<const char *>(&b[i]) + 2, 2);
  std::vector<float> first = multiply(*theirs, narrow, a16, b16);
  std::vector<float> second = multiply(*ours, wide, a, b);
  EXPECT_EQ(multiply(*theirs, narrow, a16, b16), first);
  EXPECT_EQ(multiply(*ours, wide, a, b), second);
}

TEST(Gemm, RefusesWhatNoFormServes) {
  GemmDesc desc;
  desc.m = desc.n = desc.k = 8;
  desc.aRow = desc.bRow = desc.cRow = 8;
  desc.batch = {2};
  desc.aBatch = desc.bBatch = desc.cBatch = {64};
  std::unique_ptr<Gemm> gemm;
  Status status = Gemm::create(desc, form(true, 0, 0), 1, gemm);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.message(),
            "expected packed weights without batch dimensions");
  desc.batch = desc.aBatch = desc.bBatch = desc.cBatch = {};
  GemmForm bad = form(true, 0, 0);
  bad.layout = {0, 1, 16};
  status = Gemm::create(desc, bad, 1, gemm);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.message(), "expected a layout of packed weights");
  bad = form(true, 0, 0);
  bad.bf16x6 = true;
  status = Gemm::create(desc, bad, 1, gemm);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.message(),
            "expected a product of f32 whose b is not packed");
  bad.packed = false;
  desc.bRow = 16, desc.bCol = 2;
  status = Gemm::create(desc, bad, 1, gemm);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.message(),
            "expected matrices with rows or columns without gaps");
  if (!hasBf16Tiles()) {
    desc.bRow = 8, desc.bCol = 1;
    status = Gemm::create(desc, bad, 1, gemm);
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(status.message(), "expected a machine with AMX, for which this "
                                "product was compiled");
  }
  desc.k = 0;
  status = Gemm::create(desc, form(false, 0, 0), 1, gemm);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.message(), "expected a matrix product of at least one "
                              "element, found sizes 8, 8, 0");
}
