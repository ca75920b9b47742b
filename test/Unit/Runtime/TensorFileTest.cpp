// .npy and TensorProto files: good ones, and every truncation of them.

#include "Data/OpenTensor.h"
#include "Files.h"
#include "RunFixture.h"

#include <cstring>

using namespace accel::rt;
using namespace accel::rt::test;

namespace {

/// A .npy file whose dictionary is `dictionary`.
std::string npy(const std::string &dictionary, const std::string &data,
                char version = 1) {
  std::string text = "\x93NUMPY";
  text += version;
  text += '\0';
  text += static_cast<char>(dictionary.size());
  text += static_cast<char>(dictionary.size() >> 8);
  if (version > 1)
    text += std::string(2, '\0');
  return text + dictionary + data;
}

class Files : public ::testing::Test {
protected:
  std::string open(const std::string &text) {
    spill(folder / "t", text);
    file = FileHandle(::open((folder / "t").c_str(), O_RDONLY));
    range = TensorRange();
    Status status =
        isProto ? openTensorProto(file.get(), folder / "t", range, name, memory)
                : openNpy(file.get(), folder / "t", range);
    return status.ok() ? "" : status.message();
  }
  /// The whole tensor in row-major order.
  template <class T> std::vector<T> read() {
    std::vector<T> values(static_cast<size_t>(numElements(range.shape)));
    View view = contiguousView(0, range.shape, range.dtype);
    Part part{range.shape, {}};
    part.axes.resize(range.shape.size());
    Status status =
        PieceMover(range, part, view, Coordinates()).read(values.data(), 0);
    EXPECT_TRUE(status.ok()) << status.message();
    return values;
  }
  TemporaryFolder folder;
  FileHandle file, memory;
  TensorRange range;
  std::string name;
  bool isProto = false;
};

TEST_F(Files, ReadsNpyInEitherOrder) {
  std::string data("\1\2\3\4\5\6", 6);
  for (char version : {1, 2, 3}) {
    ASSERT_EQ(open(npy("{'descr': '|u1', 'fortran_order': False, 'shape': (2, "
                       "3), }  \n",
                       data, version)),
              "");
    EXPECT_EQ(range.dtype, DType::UI8);
    EXPECT_EQ(read<uint8_t>(), (std::vector<uint8_t>{1, 2, 3, 4, 5, 6}));
  }
  ASSERT_EQ(
      open(npy("{'fortran_order': True, 'shape': (2, 3), 'descr': '|u1'}\n",
               data)),
      "");
  EXPECT_EQ(read<uint8_t>(), (std::vector<uint8_t>{1, 3, 5, 2, 4, 6}));
  ASSERT_EQ(open(npy("{'descr': '<f8', 'fortran_order': False, 'shape': ()}",
                     std::string(8, '\0'))),
            "");
  EXPECT_TRUE(range.shape.empty());
}

TEST_F(Files, RefusesOtherNpy) {
  auto descr = [](const std::string &text) {
    return npy("{'descr': '" + text +
                   "', 'fortran_order': False, 'shape': (1,)}",
               std::string(16, '\0'));
  };
  EXPECT_THAT(open(descr(">f4")), HasSubstr("little-endian, found '>f4'"));
  EXPECT_THAT(open(descr("|O")), HasSubstr("found '|O'"));
  EXPECT_THAT(open("PK\3\4 and so on, a zip file"), HasSubstr("a .npy file"));
  EXPECT_THAT(open(""), HasSubstr("a .npy file"));
  for (const char *shape :
       {"(99999999999, 99999999999)", "(0, 99999999999, 99999999999)"})
    EXPECT_THAT(open(npy(std::string("{'descr': '<f4', 'fortran_order': False, "
                                     "'shape': ") +
                             shape + "}",
                         "")),
                HasSubstr("a shape that its bytes can fill"));
  std::string whole = npyHeader(DType::F32, {2, 2}) + std::string(16, 'x');
  ASSERT_EQ(open(whole), "");
  for (size_t length = 0; length < whole.size(); ++length)
    EXPECT_NE(open(whole.substr(0, length)), "") << length;
}

TEST_F(Files, ReadsTensorProtos) {
  isProto = true;
  // dims {2, 2} packed, data_type INT64, name "ids", raw_data
  std::string raw = "\x0a\x02\x02\x02\x10\x07\x42\x03ids\x4a\x20";
  for (int64_t i : {7, -1, 3, 4})
    raw.append(reinterpret_cast<char *>(&i), 8);
  ASSERT_EQ(open(raw), "");
  EXPECT_EQ(name, "ids");
  EXPECT_EQ(range.dtype, DType::I64);
  EXPECT_EQ(range.shape, (std::vector<int64_t>{2, 2}));
  EXPECT_EQ(read<int64_t>(), (std::vector<int64_t>{7, -1, 3, 4}));
  for (size_t length = 0; length < raw.size(); ++length)
    EXPECT_NE(open(raw.substr(0, length)), "") << length;

  // dims not packed; int64_data with a negative varint
  ASSERT_EQ(open("\x08\x03\x10\x07\x3a\x0c\x01\xff\xff\xff\xff\xff\xff\xff\xff"
                 "\xff\x01\x05"),
            "");
  EXPECT_EQ(read<int64_t>(), (std::vector<int64_t>{1, -1, 5}));
  // BOOL in int32_data
  ASSERT_EQ(open(std::string("\x08\x02\x10\x09\x2a\x02\x01\x00", 8)), "");
  EXPECT_EQ(read<uint8_t>(), (std::vector<uint8_t>{1, 0}));
  // FLOAT in float_data
  ASSERT_EQ(open(std::string("\x08\x01\x10\x01\x22\x04\x00\x00\x80\x3f", 10)),
            "");
  EXPECT_EQ(read<float>(), (std::vector<float>{1}));
  // FLOAT4E2M1: two in a byte, the low bits first; raw, and in int32_data.
  for (const char *field : {"\x4a\x02\x21\x0b", "\x2a\x02\x21\x0b"}) {
    ASSERT_EQ(open(std::string("\x08\x03\x10\x17") + field), "");
    EXPECT_EQ(range.dtype, DType::F4E2M1FN);
    EXPECT_EQ(read<uint8_t>(), (std::vector<uint8_t>{1, 2, 11}));
  }
  EXPECT_THAT(open(std::string("\x08\x03\x10\x17\x4a\x01\x21")),
              HasSubstr("expected 2 bytes of elements, found 1"));
}

TEST_F(Files, RefusesOtherTensorProtos) {
  isProto = true;
  EXPECT_THAT(open("\x08\x01\x10\x08\x32\x01x"), HasSubstr("field 6"));
  EXPECT_THAT(open("\x08\x01\x10\x08"), HasSubstr("ONNX type 8"));
  EXPECT_THAT(open("\x08\x01\x10\x07\x70\x01"), HasSubstr("external data"));
  EXPECT_THAT(open("\x08\x02\x10\x07\x3a\x01\x05"),
              HasSubstr("expected 16 bytes of elements, found 8"));
  // No elements, but strides past 64 bits.
  std::string large = "\x08\x80\x80\x80\x80\x80\x20"; // 2^40
  EXPECT_THAT(open(large + large + std::string("\x08\x00\x10\x07", 4)),
              HasSubstr("a shape that its bytes can fill"));
}

TEST_F(Files, MovesTransposedPiecesOfRanks) {
  // A state [6, 4] whose file holds the transpose, cut over tp by columns and
  // over dp by rows; rank (1, 1) of a 2 x 2 mesh, into rows with gaps.
  std::vector<float> data(24);
  for (int i = 0; i < 24; ++i)
    data[i] = float(i); // file[c][r] = 6 c + r
  spill(folder / "t", std::string(reinterpret_cast<char *>(data.data()), 96));
  file = FileHandle(::open((folder / "t").c_str(), O_RDONLY));
  range = {file.get(), "t", 0, DType::F32, {6, 4}, {1, 6}};
  Coordinates coordinates = Coordinates::of({{"dp", 2}, {"tp", 2}}, 3);
  View view = contiguousView(0, {3, 2});
  view.strides = {5, 1};
  std::vector<float> memory(15, -1);
  PieceMover mover(range, {{6, 4}, {{"dp"}, {"tp"}}}, view, coordinates);
  ASSERT_TRUE(mover.read(memory.data(), 0).ok());
  EXPECT_EQ(memory, (std::vector<float>{15, 21, -1, -1, -1, 16, 22, -1, -1, -1,
                                        17, 23, -1, -1, -1}));
  // The axis of micro-batches is major: rows 0-2 are those of batch 0.
  PieceMover batches(range, {{6, 4}, {{"mb"}, {"dp", "tp"}}},
                     contiguousView(0, {2, 1}), coordinates);
  std::vector<float> two(2);
  ASSERT_TRUE(batches.read(two.data(), 2).ok());
  EXPECT_EQ(two, (std::vector<float>{22, 23}));
}

TEST_F(Files, RoundsWhatItWrites) {
  // A piece that lies as it does in the file, and one with gaps: the file has
  // bf16, and memory stays as it is.
  for (int64_t stride : {1, 2}) {
    spill(folder / "t", std::string(12, '\xff'));
    file = FileHandle(::open((folder / "t").c_str(), O_RDWR));
    range = {file.get(), "t", 2, DType::BF16, {4}, {1}};
    View view = contiguousView(0, {4});
    view.strides = {stride};
    std::vector<float> memory(static_cast<size_t>(4 * stride), 7);
    for (int i = 0; i < 4; ++i)
      memory[size_t(i * stride)] = float(i) + 0x1p-20f;
    std::vector<float> before = memory;
    Part part{{4}, {{}}};
    ASSERT_TRUE(PieceMover(range, part, view, Coordinates())
                    .write(memory.data(), 0)
                    .ok());
    EXPECT_EQ(memory, before);
    uint16_t found[6];
    ASSERT_TRUE(
        readRange(file.get(), folder / "t", 0, found, sizeof found).ok());
    EXPECT_EQ(std::vector<uint16_t>(found, found + 6),
              (std::vector<uint16_t>{0xffff, 0x3580, 0x3f80, 0x4000, 0x4040,
                                     0xffff}));
  }
}

TEST_F(Files, PadsPiecesWithZeros) {
  // A value [3, 5] as a state [4, 6], cut over tp by rows and over dp by
  // columns: the last rank of each has padding, and one row of all ranks too.
  std::vector<float> data(15);
  for (int i = 0; i < 15; ++i)
    data[i] = float(i + 1);
  std::string bytes(reinterpret_cast<char *>(data.data()), 60);
  spill(folder / "t", bytes);
  spill(folder / "copy", std::string(60, '\xff'));
  file = FileHandle(::open((folder / "t").c_str(), O_RDONLY));
  FileHandle copy(::open((folder / "copy").c_str(), O_RDWR));
  for (bool transposed : {false, true})
    for (int64_t rank = 0; rank < 8; ++rank) {
      // file[r][c] = 5 r + c + 1, or file[c][r] where the file is transposed.
      std::vector<int64_t> strides{transposed ? 1 : 5, transposed ? 3 : 1};
      range = {file.get(), "t", 0, DType::F32, {3, 5}, strides};
      auto coordinates = Coordinates::of({{"dp", 2}, {"tp", 4}}, rank);
      int64_t firstRow = rank % 4, firstColumn = rank / 4 * 3;
      View view = contiguousView(0, {1, 3});
      view.strides = {7, 2};
      Part part{{4, 6}, {{"tp"}, {"dp"}}};
      std::vector<float> memory(5, -1), filled(5, -1), expected(5, -1);
      for (int64_t c = 0; c < 3; ++c) {
        int64_t column = firstColumn + c;
        bool inside = firstRow < 3 && column < 5;
        expected[2 * c] =
            inside ? data[firstRow * strides[0] + column * strides[1]] : 0;
      }
      PieceMover mover(range, part, view, coordinates);
      ASSERT_TRUE(mover.read(memory.data(), 0).ok());
      EXPECT_EQ(memory, expected) << rank;
      TensorRange target = range, fill = range;
      target.fd = copy.get();
      ASSERT_TRUE(PieceMover(target, part, view, coordinates)
                      .write(memory.data(), 0)
                      .ok());
      fill.fill = {0, 0, char(0x80), char(0x3f)}; // 1
      ASSERT_TRUE(PieceMover(fill, part, view, coordinates)
                      .read(filled.data(), 0)
                      .ok());
      for (int64_t i = 0; i < 5; ++i)
        EXPECT_EQ(filled[i], std::min(expected[i], 1.f)) << rank;
      if (rank == 7) {
        EXPECT_EQ(slurp(folder / "copy"), bytes);
        spill(folder / "copy", std::string(60, '\xff'));
      }
    }
}

TEST_F(Files, MovesSharesOfInterleavedParts) {
  // Columns 0-3 and 4-11 are parts: a rank of tp has half of each, one of dp a
  // third of that.
  std::vector<float> data(24);
  for (int i = 0; i < 24; ++i)
    data[i] = float(i);
  std::string bytes(reinterpret_cast<char *>(data.data()), 96);
  spill(folder / "t", bytes);
  spill(folder / "copy", std::string(96, '\xff'));
  file = FileHandle(::open((folder / "t").c_str(), O_RDONLY));
  FileHandle copy(::open((folder / "copy").c_str(), O_RDWR));
  range = {file.get(), "t", 0, DType::F32, {2, 12}, {12, 1}};
  TensorRange target = range;
  target.fd = copy.get();
  Part part{{2, 12}, {{}, {"tp", "dp"}}, Interleaved{1, {4, 8}, 2}};
  std::vector<std::vector<float>> expected = {{0, 1, 12, 13}, {4, 5, 16, 17},
                                              {6, 7, 18, 19}, {2, 3, 14, 15},
                                              {8, 9, 20, 21}, {10, 11, 22, 23}};
  for (int64_t rank = 0; rank < 6; ++rank) {
    auto coordinates = Coordinates::of({{"tp", 2}, {"dp", 3}}, rank);
    View view = contiguousView(0, {2, 2});
    std::vector<float> memory(4, -1);
    ASSERT_TRUE(
        PieceMover(range, part, view, coordinates).read(memory.data(), 0).ok());
    EXPECT_EQ(memory, expected[rank]) << rank;
    ASSERT_TRUE(PieceMover(target, part, view, coordinates)
                    .write(memory.data(), 0)
                    .ok());
  }
  EXPECT_EQ(slurp(folder / "copy"), bytes);
  // Each second column.
  part = {{2, 12}, {{}, {"tp"}}, Interleaved{1, {2}, 2, 6}};
  spill(folder / "copy", std::string(96, '\xff'));
  for (int64_t rank = 0; rank < 2; ++rank) {
    auto coordinates = Coordinates::of({{"tp", 2}}, rank);
    View view = contiguousView(0, {2, 6});
    std::vector<float> memory(12, -1);
    ASSERT_TRUE(
        PieceMover(range, part, view, coordinates).read(memory.data(), 0).ok());
    for (int i = 0; i < 12; ++i)
      EXPECT_EQ(memory[i], 2 * i + rank);
    ASSERT_TRUE(PieceMover(target, part, view, coordinates)
                    .write(memory.data(), 0)
                    .ok());
  }
  EXPECT_EQ(slurp(folder / "copy"), bytes);
  // A third of these; and a piece of the first ones' end and others' start.
  part.axes = {{}, {"tp", "dp"}};
  View third = contiguousView(0, {2, 2}), four = contiguousView(0, {2, 4});
  std::vector<float> some(4), both(8);
  ASSERT_TRUE(
      PieceMover(range, part, third, Coordinates::of({{"tp", 2}, {"dp", 3}}, 4))
          .read(some.data(), 0)
          .ok());
  EXPECT_EQ(some, (std::vector<float>{5, 7, 17, 19}));
  part.axes = {{}, {"dp"}};
  ASSERT_TRUE(PieceMover(range, part, four, Coordinates::of({{"dp", 3}}, 1))
                  .read(both.data(), 0)
                  .ok());
  EXPECT_EQ(both, (std::vector<float>{8, 10, 1, 3, 20, 22, 13, 15}));
  part = {{2, 12}, {{}, {"tp", "dp"}}, Interleaved{1, {4, 8}, 2}};
  // A piece that ends within a share, and the start of the next.
  part.axes = {{}, {"dp"}};
  View view = contiguousView(0, {2, 4});
  std::vector<float> memory(8), filled(8);
  auto second = Coordinates::of({{"dp", 3}}, 1);
  ASSERT_TRUE(
      PieceMover(range, part, view, second).read(memory.data(), 0).ok());
  EXPECT_EQ(memory, (std::vector<float>{6, 7, 2, 3, 18, 19, 14, 15}));
  range.fill = {0, 0, char(0x80), char(0x3f)}; // 1
  ASSERT_TRUE(
      PieceMover(range, part, view, second).read(filled.data(), 0).ok());
  EXPECT_EQ(filled, std::vector<float>(8, 1));
}

} // namespace
