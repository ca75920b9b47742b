// Megatron-LM datasets: what the index says, each thing it must not say, and
// the samples that are cut out of the tokens. python/tests/test_sources.py
// reads a larger one beside NumPy.

#include "Data/TokenFile.h"
#include "Files.h"
#include "TinyExecutable.h"

#include <gmock/gmock.h>

using namespace accel::rt;
using namespace accel::rt::test;
using ::testing::HasSubstr;

namespace {

template <class T> std::string bytesOf(std::vector<T> values) {
  return std::string(reinterpret_cast<const char *>(values.data()),
                     values.size() * sizeof(T));
}

/// Four sequences of 3, 0, 4 and 5 tokens 0, 1, … of uint16, in three
/// documents.
class Dataset : public ::testing::Test {
protected:
  std::string magic = std::string("MMIDIDX\0\0", 9);
  uint64_t version = 1;
  uint8_t code = 8;
  std::vector<int32_t> lengths = {3, 0, 4, 5};
  std::vector<int64_t> pointers = {0, 6, 6, 14}, documents = {0, 1, 3, 4};
  std::string rest;

  std::string write() {
    spill(folder / "d.idx",
          magic + bytesOf<uint64_t>({version}) + bytesOf<uint8_t>({code}) +
              bytesOf<uint64_t>({lengths.size(), documents.size()}) +
              bytesOf(lengths) + bytesOf(pointers) + bytesOf(documents) + rest);
    std::vector<uint16_t> tokens;
    for (uint16_t i = 0; i < 12; ++i)
      tokens.push_back(i);
    spill(folder / "d.bin", bytesOf(tokens));
    return folder / "d";
  }
  std::string open(const std::string &path, int64_t length,
                   std::optional<DataSplit> split = {}) {
    file = {};
    Status status = file.open(path, "", length, split);
    return status.ok() ? "" : status.message();
  }
  std::vector<int64_t> read(int64_t sample, int64_t begin, int64_t count) {
    std::vector<int64_t> tokens(static_cast<size_t>(count), -1);
    Status status = file.read(sample, begin, count, tokens.data());
    EXPECT_TRUE(status.ok()) << status.message();
    return tokens;
  }
  TemporaryFolder folder;
  TokenFile file;
};

using Tokens = std::vector<int64_t>;

TEST_F(Dataset, IsNamedByItsPrefixOrAFile) {
  write();
  for (const char *name : {"d", "d.bin", "d.idx"}) {
    ASSERT_EQ(open(folder / name, 4), "") << name;
    EXPECT_EQ(file.numSamples(), 2); // of 11 tokens that have one behind them
    EXPECT_EQ(file.numFollowed(1), 4);
    EXPECT_EQ(read(1, 0, 5), (Tokens{4, 5, 6, 7, 8}));
  }
  // Raw integers beside something that is no index:
  spill(folder / "raw.bin", bytesOf<uint16_t>({1, 2, 3, 4}));
  spill(folder / "raw.idx", "anything");
  ASSERT_EQ(open(folder / "raw.bin", 4), "");
  EXPECT_EQ(file.numSamples(), 1); // whose last token has none
  EXPECT_EQ(file.numFollowed(0), 3);
  EXPECT_EQ(read(0, 0, 4), (Tokens{1, 2, 3, 4}));
}

TEST_F(Dataset, IsPartedBySequences) {
  write();
  std::array<DataSplit, 3> splits;
  // Of 4 sequences the bounds are at 2.5, to the even 2, and at 3.5, to 4.
  ASSERT_TRUE(readSplit("5,2,1", splits).ok());
  ASSERT_EQ(open(folder / "d", 2, splits[0]), "");
  EXPECT_EQ(file.numSamples(), 1);
  EXPECT_EQ(read(0, 0, 3), (Tokens{0, 1, 2}));
  ASSERT_EQ(open(folder / "d", 2, splits[1]), "");
  EXPECT_EQ(file.numSamples(), 4);
  EXPECT_EQ(read(0, 0, 3), (Tokens{3, 4, 5}));
  EXPECT_THAT(open(folder / "d", 2, splits[2]),
              HasSubstr("at least one sample of 2 tokens and the one behind "
                        "it, found 0 in this part of --data-split"));
  spill(folder / "raw", std::string(8, 'x'));
  EXPECT_THAT(open(folder / "raw", 2, splits[0]),
              HasSubstr("--data-split parts Megatron-LM datasets"));
  ASSERT_TRUE(readSplit("1", splits).ok());
  EXPECT_EQ(splits[0].end, 1);
  for (const char *text : {"", "a", "1,b", "0,0", "-1,2", "1,1,1,1", "nan"})
    EXPECT_FALSE(readSplit(text, splits).ok()) << text;
}

TEST_F(Dataset, HasEachTypeOfIntegers) {
  const struct {
    uint8_t code;
    int width;
  } types[] = {{1, 1}, {2, 1}, {3, 2}, {4, 4}, {5, 8}};
  for (auto [type, width] : types) {
    code = type;
    lengths = {24 / width};
    pointers = {0};
    documents = {0, 1};
    ASSERT_EQ(open(write(), 2), "") << int(type);
    EXPECT_EQ(file.numSamples(), (24 / width - 1) / 2);
  }
  for (uint8_t other : {0, 6, 7, 9}) {
    code = other;
    EXPECT_THAT(open(write(), 2),
                HasSubstr("found type " + std::to_string(other)));
  }
  EXPECT_FALSE(TokenFile().open(folder / "d", "int32", 2).ok());
}

TEST_F(Dataset, RefusesAnIndexThatIsNotRight) {
  auto error = [&](auto change) {
    Dataset_RefusesAnIndexThatIsNotRight_Test &test = *this;
    auto saved = std::tuple(version, lengths, pointers, documents, rest);
    change();
    std::string message = open(write(), 2);
    std::tie(test.version, test.lengths, test.pointers, test.documents,
             test.rest) = saved;
    return message;
  };
  EXPECT_THAT(error([&] { version = 2; }),
              HasSubstr("d.idx' as the index of a Megatron-LM dataset: "
                        "expected version 1, found 2"));
  EXPECT_THAT(error([&] { rest = "xx"; }),
              HasSubstr("bytes for 4 sequences and 4 bounds of documents"));
  EXPECT_THAT(error([&] { rest = "mode"; }), HasSubstr("found modes"));
  EXPECT_THAT(error([&] { pointers[2] = 8; }),
              HasSubstr("expected sequence 2 of at least 0 tokens at byte 6, "
                        "behind the one before it, found 4 tokens at byte 8"));
  EXPECT_THAT(error([&] { lengths[3] = -5; }), HasSubstr("found -5 tokens"));
  EXPECT_THAT(error([&] { lengths[3] = 6; }),
              HasSubstr("its sequences have 26 bytes, and the data beside it "
                        "24"));
  EXPECT_THAT(error([&] { documents[0] = 1; }), HasSubstr("found 1 behind 0"));
  EXPECT_THAT(error([&] { documents[2] = 0; }), HasSubstr("found 0 behind 1"));
  EXPECT_THAT(error([&] { documents[3] = 5; }), HasSubstr("found 5 behind 3"));
  write();
  std::string index = slurp(folder / "d.idx");
  spill(folder / "d.idx", index.substr(0, 20));
  EXPECT_THAT(open(folder / "d", 2), HasSubstr("expected 'MMIDIDX'"));
  index.replace(18, 8, 8, '\xff');
  spill(folder / "d.idx", index);
  EXPECT_THAT(open(folder / "d", 2), HasSubstr("expected more bytes for "));
  std::remove((folder / "d.bin").c_str());
  EXPECT_THAT(open(folder / "d", 2), HasSubstr("d.bin': No such file"));
}

} // namespace
