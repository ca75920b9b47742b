// What every device must do, whichever it is: arenas of the planned size and
// alignment, moves between host and arena, and each kind of command by its
// meaning, written plainly here.

#include "Conformance/DeviceFixture.h"
#include "Format/Layout.h"

#include <cstring>

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
      device->makeStreams({{"compute"}, 0, 2, 2}, watcher, streams).ok());
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
