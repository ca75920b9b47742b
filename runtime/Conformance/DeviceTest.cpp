// What every device must do, whichever it is: arenas of the planned size and
// alignment, moves between host and arena, and each kind of command by its
// meaning, written plainly here.

#include "Conformance/DeviceFixture.h"
#include "Format/Layout.h"

#include <cstring>
#include <gmock/gmock.h>

using namespace accel::rt;
using namespace accel::rt::test;
using namespace accel::rt::conformance;

namespace {

TEST_P(DeviceConformance, AllocatesToTheByte) {
  Address first = allocate(1000), second = allocate(5 << 20, 4096);
  EXPECT_EQ(device().allocatedBytes(), 1000u + (5 << 20));
  EXPECT_EQ(first.value % 64, 0u);
  EXPECT_EQ(second.value % 4096, 0u);
  EXPECT_TRUE(second - first >= 1000 || first - second >= 5 << 20);
}

TEST_P(DeviceConformance, KeepsWhatIsUploaded) {
  std::vector<int64_t> values(100000);
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<int64_t>(i * i);
  Address address = place(values);
  EXPECT_EQ(fetch<int64_t>(address, values.size()), values);
}

TEST_P(DeviceConformance, CopiesStridedViews) {
  // A transpose of [300, 257] into rows of 301, for every width of element.
  auto check = [&](auto zero, DType dtype) {
    using T = decltype(zero);
    int64_t rows = 300, columns = 257, pitch = 301;
    std::vector<T> source = counting<T>(rows * columns),
                   target(columns * pitch, T(7)), expected = target;
    View from = contiguousView(0, {rows, columns}, dtype), to = from;
    to.strides = {1, pitch};
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t c = 0; c < columns; ++c)
        expected[c * pitch + r] = source[r * columns + c];
    Address a = place(source), b = place(target);
    run(command(CopyCommand{from, to}, "Transpose"), {a, b});
    EXPECT_EQ(fetch<T>(b, target.size()), expected);
  };
  check(uint8_t(), DType::UI8);
  check(int16_t(), DType::I16);
  check(float(), DType::F32);
  check(double(), DType::F64);
}

TEST_P(DeviceConformance, Fills) {
  std::vector<float> values = counting<float>(24);
  Address address = place(values);
  View view = contiguousView(0, {3, 4});
  view.strides = {8, 2};
  run(command(FillCommand{{0, 0, 128, 63}, view}, "Fill"), {address});
  for (int64_t r = 0; r < 3; ++r)
    for (int64_t c = 0; c < 4; ++c)
      values[r * 8 + c * 2] = 1;
  EXPECT_EQ(fetch<float>(address, 24), values);
}

TEST_P(DeviceConformance, Multiplies) {
  // c [m, n] = a [m, k] · b [k, n] + bias, b transposed, small whole numbers:
  // every order of summation gives the same.
  auto check = [&](auto zero, DType dtype) {
    using T = decltype(zero);
    int64_t m = 37, n = 70, k = 50;
    std::vector<T> a(m * k), b(n * k), bias(n), c(m * n), expected(m * n);
    for (size_t i = 0; i < a.size(); ++i)
      a[i] = static_cast<T>(int(i * 7 % 11) - 5);
    for (size_t i = 0; i < b.size(); ++i)
      b[i] = static_cast<T>(int(i * 5 % 13) - 6);
    for (int64_t j = 0; j < n; ++j)
      bias[j] = static_cast<T>(j);
    for (int64_t i = 0; i < m; ++i)
      for (int64_t j = 0; j < n; ++j) {
        expected[i * n + j] = bias[j];
        for (int64_t l = 0; l < k; ++l)
          expected[i * n + j] += a[i * k + l] * b[j * k + l];
      }
    GemmCommand gemm;
    gemm.a = contiguousView(0, {m, k}, dtype);
    gemm.b = contiguousView(1, {k, n}, dtype);
    gemm.b.strides = {1, k};
    gemm.c = contiguousView(2, {m, n}, dtype);
    gemm.bias = contiguousView(3, {n}, dtype);
    gemm.scratch = contiguousView(4, {1 << 22}, DType::I8);
    gemm.form = {{"chunk_rows", int64_t(16)}, {"chunk_columns", int64_t(32)}};
    Address at[] = {place(a), place(b), place(c), place(bias),
                    allocate(1 << 22)};
    run(command(gemm, "MatMul"), {at[0], at[1], at[2], at[3], at[4]});
    EXPECT_EQ(fetch<T>(at[2], c.size()), expected);
  };
  check(float(), DType::F32);
  check(double(), DType::F64);
}

namespace {
/// Rows, their groups and their groups' matrices, of small whole numbers: every
/// order of summation gives the same.
template <class T> struct Grouped {
  int64_t rows, count, k, n;
  std::vector<T> x, w, y;
  std::vector<int64_t> groups;
  std::vector<T> products, sums;

  Grouped(int64_t rows, int64_t count, int64_t k, int64_t n)
      : rows(rows), count(count), k(k), n(n), x(rows * k), w(count * n * k),
        y(rows * n), groups(rows), products(rows * n), sums(count * k * n) {
    auto fill = [](std::vector<T> &values, int step, int modulus) {
      for (size_t i = 0; i < values.size(); ++i)
        values[i] = static_cast<T>(int(i) * step % modulus - modulus / 2);
    };
    fill(x, 7, 11), fill(w, 5, 13), fill(y, 3, 7);
    // The last group has no rows, the first has most; some rows have none.
    for (int64_t row = 0; row < rows; ++row)
      groups[row] = row % 9 == 4 ? -1 : row % 5 ? 0 : row % (count - 1);
    for (int64_t row = 0; row < rows; ++row)
      for (int64_t j = 0, group = groups[row]; group >= 0 && j < n; ++j)
        for (int64_t l = 0; l < k; ++l) {
          products[row * n + j] += x[row * k + l] * w[(group * n + j) * k + l];
          sums[(group * k + l) * n + j] += x[row * k + l] * y[row * n + j];
        }
  }
};
constexpr int64_t kRoom = 1 << 22;
} // namespace

TEST_P(DeviceConformance, MultipliesRowsByTheirGroupsMatrices) {
  auto check = [&](auto zero, DType dtype, int64_t rows, int64_t columns) {
    using T = decltype(zero);
    Grouped<T> given(rows, 6, 24, 150);
    std::vector<T> c(given.products.size(), 77), sums(given.sums.size(), 77);
    Address x = place(given.x), w = place(given.w), y = place(given.y),
            groups = place(given.groups), product = place(c), sum = place(sums),
            order = allocate(kRoom), scratch = allocate(kRoom);
    Form form;
    if (columns)
      form = {{"chunk_columns", columns}};
    GroupedGemmCommand gemm;
    gemm.a = contiguousView(0, {rows, given.k}, dtype);
    gemm.b = contiguousView(1, {given.count, given.k, given.n}, dtype);
    gemm.b.strides = {given.n * given.k, 1, given.k};
    gemm.groups = contiguousView(2, {rows}, DType::I64);
    gemm.c = contiguousView(3, {rows, given.n}, dtype);
    gemm.order = gemm.scratch = contiguousView(4, {kRoom}, DType::I8);
    gemm.form = form;
    run(command(gemm, "Experts"), {x, w, groups, product, order, scratch});
    EXPECT_EQ(fetch<T>(product, c.size()), given.products);
    GroupedGemmGradCommand grad;
    grad.a = gemm.a;
    grad.b = contiguousView(1, {rows, given.n}, dtype);
    grad.groups = gemm.groups;
    grad.c = contiguousView(3, {given.count, given.k, given.n}, dtype);
    grad.order = gemm.order, grad.scratch = gemm.scratch;
    grad.form = form;
    std::vector<Address> views = {x, y, groups, sum, order, scratch};
    run(command(grad, "Experts"), views);
    EXPECT_EQ(fetch<T>(sum, sums.size()), given.sums);
    grad.accumulate = true;
    run(command(grad, "Experts"), views);
    for (T &value : given.sums)
      value *= 2;
    EXPECT_EQ(fetch<T>(sum, sums.size()), given.sums);
  };
  for (int64_t rows : {1, 7, 40, 1111})
    for (int64_t columns : {0, 64, 128}) {
      check(float(), DType::F32, rows, columns);
      check(double(), DType::F64, rows, columns);
    }
}

TEST_P(DeviceConformance, RefusesRowsOfGroupsThatAreNot) {
  Grouped<float> given(40, 6, 4, 4);
  GroupedGemmCommand gemm;
  gemm.a = contiguousView(0, {40, 4});
  gemm.b = contiguousView(1, {6, 4, 4});
  gemm.groups = contiguousView(2, {40}, DType::I64);
  gemm.c = contiguousView(3, {40, 4});
  gemm.order = gemm.scratch = contiguousView(4, {kRoom}, DType::I8);
  for (int64_t wrong : {6, -2}) {
    given.groups[17] = wrong;
    Status status =
        tryToRun(command(gemm, "Experts"),
                 {place(given.x), place(given.w), place(given.groups),
                  place(given.products), allocate(kRoom), allocate(kRoom)});
    EXPECT_THAT(
        status.message(),
        ::testing::HasSubstr("found " + std::to_string(wrong) + " of row 17"));
  }
  std::unique_ptr<Task> task;
  gemm.scratch->shape = {64};
  EXPECT_FALSE(device().prepare(command(gemm, "Experts"), task).ok());
  gemm.scratch->shape = {kRoom};
  gemm.order->shape = {64};
  EXPECT_FALSE(device().prepare(command(gemm, "Experts"), task).ok());
  gemm.order->shape = {kRoom};
  gemm.groups.dtype = DType::F32;
  EXPECT_FALSE(device().prepare(command(gemm, "Experts"), task).ok());
}

TEST_P(DeviceConformance, DealsRowsToTheRanksOfTheirGroups) {
  // Two ranks with four rows and two groups each.
  std::vector<int64_t> groups = {3, 0, 2, 1, -1, 3, 1, 2};
  const int64_t room = 5;
  auto deal = [&](int64_t rank, std::vector<int64_t> *results, int64_t room) {
    DealRowsCommand command;
    command.groups = contiguousView(0, {8}, DType::I64);
    command.rank = contiguousView(1, {}, DType::I64);
    command.rows = contiguousView(2, {room}, DType::I64);
    command.own = contiguousView(3, {room}, DType::I64);
    command.places = contiguousView(4, {4}, DType::I64);
    command.numGroups = 4, command.ranks = 2;
    std::vector<int64_t> unset(8, 77);
    Address at[] = {place(groups), place(std::vector<int64_t>{rank}),
                    place(unset), place(unset), place(unset)};
    Status status = tryToRun(test::command(command, "Experts"),
                             {at[0], at[1], at[2], at[3], at[4]});
    for (int result = 0; result < 3; ++result)
      results[result] = fetch<int64_t>(at[2 + result], result < 2 ? room : 4);
    return status;
  };
  using List = std::vector<int64_t>;
  List results[3];
  EXPECT_TRUE(deal(0, results, room).ok());
  EXPECT_EQ(results[0], (List{1, 3, 6, -1, -1}));
  EXPECT_EQ(results[1], (List{0, 1, 1, -1, -1}));
  EXPECT_EQ(results[2], (List{room + 0, 0, room + 1, 1}));
  EXPECT_TRUE(deal(1, results, room).ok());
  EXPECT_EQ(results[0], (List{0, 2, 5, 7, -1}));
  EXPECT_EQ(results[1], (List{1, 0, 1, 0, -1}));
  EXPECT_EQ(results[2], (List{-1, room + 2, 2, room + 3}));
  // All ranks find that one of them has no room.
  EXPECT_THAT(deal(0, results, 3).message(),
              ::testing::HasSubstr("found 4 rows for the experts of rank 1 of "
                                   "its group, where the plan has room for 3"));
  groups[2] = 4;
  EXPECT_THAT(deal(0, results, room).message(),
              ::testing::HasSubstr("expected groups in [0, 4), or -1 for none, "
                                   "found 4"));
}

TEST_P(DeviceConformance, RefusesWhatItDoesNotHave) {
  std::unique_ptr<Task> task;
  GemmCommand gemm;
  gemm.a = gemm.b = gemm.c = contiguousView(0, {2, 2}, DType::I32);
  EXPECT_FALSE(device().prepare(command(gemm, "MatMulInteger"), task).ok());
  gemm.a = contiguousView(0, {2, 3});
  gemm.b = gemm.c = contiguousView(0, {2, 2});
  EXPECT_FALSE(device().prepare(command(gemm, "MatMul"), task).ok());
  KernelCommand kernel{"kernel_9", {}, {}, 1, 1};
  EXPECT_FALSE(device().prepare(command(kernel, "Gelu"), task).ok());
  EXPECT_FALSE(device().prepare(command(RecordCommand{"E"}, "E"), task).ok());
}

TEST_P(DeviceConformance, MovesRows) {
  std::vector<int16_t> values = counting<int16_t>(40);
  Address address = place(values);
  // Every fourth element, from a host that has every second.
  std::vector<int16_t> few = {-1, 0, -2, 0, -3, 0};
  ASSERT_TRUE(device()
                  .upload(address + 2, few.data(),
                          Rows::ofElements(2, 3, /*arenaStride=*/4, 2))
                  .ok());
  // One row, twice.
  ASSERT_TRUE(device().upload(address + 40, few.data(), {6, 2, 10, 0}).ok());
  ASSERT_TRUE(device().fill(address + 70, 0xff, {3, 2, 4, 0}).ok());
  std::vector<int16_t> expected = values;
  for (int i = 0; i < 3; ++i)
    expected[1 + 4 * i] = static_cast<int16_t>(-1 - i);
  for (int i : {20, 25}) {
    std::copy_n(few.begin(), 3, expected.begin() + i);
  }
  auto *bytes = reinterpret_cast<unsigned char *>(expected.data());
  for (int at : {70, 74})
    std::fill_n(bytes + at, 3, 0xff);
  EXPECT_EQ(fetch<int16_t>(address, values.size()), expected);
  std::vector<int16_t> back(6, 9);
  ASSERT_TRUE(device()
                  .download(back.data(), address + 2,
                            Rows::ofElements(2, 3, /*arenaStride=*/4, 2))
                  .ok());
  EXPECT_EQ(back, (std::vector<int16_t>{-1, 9, -2, 9, -3, 9}));
}

INSTANTIATE_TEST_SUITE_P(Backends, DeviceConformance,
                         ::testing::ValuesIn(backends()), [](const auto &info) {
                           return std::string(info.param.name);
                         });

TEST(NullDevice, RecordsCommandsInOrder) {
  std::vector<RecordedCommand> log;
  std::unique_ptr<Device> device = null::makeDevice(&log);
  Address arena;
  ASSERT_TRUE(device->allocate({"device", 64, 64, 0}, arena).ok());
  View x = contiguousView(0, {4});
  Command copy = command(CopyCommand{x, x}, "Copy"),
          fill = command(FillCommand{{0, 0, 0, 0}, x}, "Fill");
  Work first, second;
  ASSERT_TRUE(device->prepare(copy, first.task).ok());
  ASSERT_TRUE(device->prepare(fill, second.task).ok());
  first.places = {{arena}, {arena + 16}};
  second.places = {{arena}};
  CalmWatcher watcher;
  std::unique_ptr<Streams> streams;
  ASSERT_TRUE(
      device->makeStreams({{"compute"}, nullptr, 0, 2, 2}, watcher, streams)
          .ok());
  Step fills, copies;
  fills.work = &second;
  fills.microBatch = 3;
  copies.work = &first;
  copies.microBatch = 4;
  streams->enqueue(fills, {});
  streams->enqueue(copies, {});
  ASSERT_TRUE(streams->join().status.ok());
  ASSERT_EQ(log.size(), 2u);
  EXPECT_EQ(log[0].command, &fill);
  ASSERT_EQ(log[0].addresses.size(), 1u);
  EXPECT_EQ(log[0].addresses[0] - arena, 0);
  EXPECT_EQ(log[1].microBatch, 4);
  EXPECT_EQ(log[1].addresses.size(), 2u);
}

} // namespace
