// What tokens feed: which inputs, with what, and which piece of it.

#include "Feed/DataFeed.h"
#include "PlainMemory.h"
#include "TinyExecutable.h"

#include <gmock/gmock.h>

#include <cmath>
#include <fstream>

using namespace accel::rt;
using namespace accel::rt::test;
using ::testing::HasSubstr;

namespace {

class Feed : public ::testing::Test {
protected:
  Feed() {
    // One sample, so that there is one order; one token leaves int32.
    std::vector<int64_t> tokens;
    for (int64_t i = 0; i < 1200; ++i)
      tokens.push_back(i == 7 ? int64_t(1) << 40 : i);
    std::ofstream(folder / "d.bin", std::ios::binary)
        .write(reinterpret_cast<char *>(tokens.data()), 1200 * 8);
    options.data = folder / "d.bin";
    options.dataType = "int64";
    executable.mesh = {{"cp", 2}};
  }
  void addInput(std::string name, DType dtype = DType::I64,
                std::vector<int64_t> shape = {1, 1200}) {
    Part part{shape, {}};
    part.axes.resize(shape.size());
    executable.inputs.push_back({name, dtype, part.shape, 0});
  }
  std::string open() {
    Status status = feed.open(executable.inputs,
                              {options.data, options.dataType,
                               options.dataLabels, SampleOrder::Shuffled});
    return status.ok() ? "" : status.message();
  }
  /// The second half of the columns of an input.
  template <class T> std::vector<T> secondHalf(const std::string &name) {
    DType dtype = sizeof(T) == 8 ? DType::I64 : DType::I32;
    ReadCommand read{"input",
                     name,
                     {{1, 1200}, {{}, {"cp"}}},
                     contiguousView(0, {1, 600}, dtype)};
    Coordinates coordinates{executable.mesh, {1}};
    std::unique_ptr<HostTask> task =
        feed.prepare(read, coordinates, memory, {}, finished);
    std::vector<T> values(600);
    Address address = PlainMemory::of(values.data());
    Status status = task->run(&address, 0);
    EXPECT_TRUE(status.ok());
    return values;
  }
  TemporaryFolder folder;
  Executable executable;
  RunOptions options;
  DataFeed feed;
  PlainMemory memory;
  int64_t finished = 0;
};

TEST_F(Feed, KnowsInputsByNameTypeAndShape) {
  addInput("flat", DType::I64, {1200});
  for (const char *name : {"tokens", "Targets", "my_labels", "attention_mask",
                           "position_ids", "token_type_ids", "segment_ids"})
    addInput(name);
  addInput("floats", DType::F32);
  addInput("bytes", DType::UI8);
  addInput("other_length", DType::I64, {1, 600});
  addInput("of_all_samples");
  executable.inputs.back().batchDim.reset();
  ASSERT_EQ(open(), "");
  for (const TensorPlan &input : executable.inputs) {
    auto number = &input - executable.inputs.data();
    bool expected = number >= 1 && number <= 4;
    EXPECT_EQ(feed.feeds(input.name), expected) << input.name;
  }
  EXPECT_THAT(feed.whyNot("flat"),
              HasSubstr("feeds integers [1, 1200] that are tokens, labels or a "
                        "mask, and 'flat' is none of them"));
}

TEST_F(Feed, GivesEveryRankItsColumns) {
  addInput("tokens");
  addInput("labels");
  addInput("mask");
  options.dataLabels = "next";
  ASSERT_EQ(open(), "");
  std::vector<int64_t> tokens = secondHalf<int64_t>("tokens"),
                       labels = secondHalf<int64_t>("labels");
  for (int64_t i = 0; i < 600; ++i) {
    EXPECT_EQ(tokens[i], 600 + i);
    EXPECT_EQ(labels[i], i == 599 ? -100 : 601 + i);
  }
  EXPECT_EQ(secondHalf<int64_t>("mask"), std::vector<int64_t>(600, 1));
}

TEST_F(Feed, DoesNotWrapTokensThatAreTooLarge) {
  addInput("tokens", DType::I32);
  ASSERT_EQ(open(), "");
  ReadCommand read{"input",
                   "tokens",
                   {{1, 1200}, {{}, {}}},
                   contiguousView(0, {1, 1200}, DType::I32)};
  std::vector<int32_t> values(1200);
  Address address = PlainMemory::of(values.data());
  ASSERT_TRUE(
      feed.prepare(read, {}, memory, {}, finished)->run(&address, 0).ok());
  EXPECT_EQ(values[6], 6);
  EXPECT_EQ(values[7], INT32_MAX); // a kernel refuses it, as it must
}

/// Three samples [4, 2] of i32 that lie along dimension 1 of a file: element
/// (row, sample, column) is 100·sample + 10·row + column.
class ArrayFeed : public Feed {
protected:
  ArrayFeed() {
    std::vector<int32_t> values;
    for (int32_t row = 0; row < 4; ++row)
      for (int32_t sample = 0; sample < 3; ++sample)
        for (int32_t column = 0; column < 2; ++column)
          values.push_back(100 * sample + 10 * row + column);
    std::ofstream file(folder / "a.npy", std::ios::binary);
    file << npyHeader(DType::I32, {4, 3, 2});
    file.write(reinterpret_cast<char *>(values.data()),
               static_cast<std::streamsize>(values.size() * 4));
    executable.inputs = {{"x", DType::I64, {4, 2, 2}, 1}};
    executable.mesh = {{"cp", 2}};
  }
  /// The lower rows of an input of a batch of 2, at stride 8 in memory.
  std::vector<int64_t> lowerRows(const std::string &order) {
    Status status =
        feed.open(executable.inputs,
                  {"x=" + (folder / "a.npy"), "", "",
                   order == "file" ? SampleOrder::InFile : SampleOrder::Once});
    EXPECT_TRUE(status.ok()) << status.message();
    ReadCommand read{"input",
                     "x",
                     {{4, 2, 2}, {{"cp"}, {}, {}}},
                     contiguousView(0, {2, 2, 2}, DType::I64)};
    read.target.strides = {8, 2, 1};
    std::vector<int64_t> values(16, -1);
    Address address = PlainMemory::of(values.data());
    Status ran =
        feed.prepare(read, {executable.mesh, {1}}, memory, {}, finished)
            ->run(&address, 0);
    EXPECT_TRUE(ran.ok()) << ran.message();
    return values;
  }
};

TEST_F(ArrayFeed, GivesEveryRankItsPieceOfEachSample) {
  finished = 1; // samples 2 and, of the next epoch, 0
  EXPECT_EQ(lowerRows("file"),
            (std::vector<int64_t>{220, 221, 20, 21, -1, -1, -1, -1, 230, 231,
                                  30, 31, -1, -1, -1, -1}));
}

TEST_F(ArrayFeed, FillsUpTheLastBatchOfAnEvaluation) {
  finished = 1; // sample 2, and that again
  EXPECT_EQ(lowerRows("once"),
            (std::vector<int64_t>{220, 221, 220, 221, -1, -1, -1, -1, 230, 231,
                                  230, 231, -1, -1, -1, -1}));
}

TEST_F(ArrayFeed, FindsNumbersInFiles) {
  lowerRows("file");
  bool isFound = false;
  int64_t found = 0;
  ASSERT_TRUE(feed.findAny({-100, 231}, isFound, found).ok());
  EXPECT_TRUE(isFound);
  EXPECT_EQ(found, 231);
  ASSERT_TRUE(feed.findAny({-100, 300}, isFound, found).ok());
  EXPECT_FALSE(isFound);
}

TEST_F(ArrayFeed, TellsDataFromOthers) {
  lowerRows("file");
  DataCursor cursor, same, other;
  ASSERT_TRUE(feed.getCursor(true, options, cursor).ok());
  EXPECT_EQ(cursor.samples, 3);
  EXPECT_EQ(cursor.batch, 2);
  EXPECT_FALSE(cursor.isShuffled);
  ASSERT_TRUE(feed.getCursor(true, options, same).ok());
  EXPECT_EQ(cursor.hash, same.hash);
  std::fstream(folder / "a.npy", std::ios::in | std::ios::out)
      .seekp(-1, std::ios::end)
      .put(1);
  ASSERT_TRUE(feed.getCursor(true, options, other).ok());
  EXPECT_NE(cursor.hash, other.hash);
}

TEST_F(ArrayFeed, NamesTheFileThatBecameShort) {
  lowerRows("file");
  std::filesystem::resize_file(folder / "a.npy", 150);
  ReadCommand read{"input",
                   "x",
                   {{4, 2, 2}, {{}, {}, {}}},
                   contiguousView(0, {4, 2, 2}, DType::I64)};
  std::vector<int64_t> values(16);
  Address address = PlainMemory::of(values.data());
  Status status = feed.prepare(read, {{{"cp", 1}}, {0}}, memory, {}, finished)
                      ->run(&address, 0);
  ASSERT_FALSE(status.ok());
  EXPECT_THAT(status.message(),
              HasSubstr("sample 0 of '" + (folder / "a.npy")));
  EXPECT_THAT(status.message(), HasSubstr("found its end"));
}

TEST_F(ArrayFeed, SaysWhereARefusedNumberComesFrom) {
  lowerRows("file");
  std::string message = "node 'n': expected indices from 0 to 96 for a table "
                        "of size 97, found 231 at position 5 of input 'x'";
  EXPECT_EQ(feed.whereRefused(1, message),
            ", which is sample 2, element [3, 1], of '" + (folder / "a.npy") +
                "'");
  // The batch before has it not, and no other input and message name one.
  EXPECT_EQ(feed.whereRefused(0, message), "");
  EXPECT_EQ(feed.whereRefused(1, "found 231 at position 5 of input 'y'"), "");
  EXPECT_EQ(feed.whereRefused(1, "another rank ended"), "");
}

TEST_F(Feed, SaysWhichTokenWasRefused) {
  addInput("tokens");
  ASSERT_EQ(open(), "");
  EXPECT_EQ(feed.whereRefused(0, "expected indices from 0 to 9, found "
                                 "1099511627776 at position 7 of input "
                                 "'tokens'"),
            ", which is sample 0, token 7, of '" + (folder / "d.bin") + "'");
}

TEST_F(Feed, SaysWhichSampleIsNotFinite) {
  float values[] = {1, 2, 3, 4, HUGE_VALF, 6};
  std::ofstream file(folder / "f.npy", std::ios::binary);
  file << npyHeader(DType::F32, {3, 2});
  file.write(reinterpret_cast<char *>(values), sizeof values);
  file.close();
  addInput("f", DType::F64, {1, 2});
  Status status = feed.open(executable.inputs, {"f=" + (folder / "f.npy"), "",
                                                "", SampleOrder::InFile});
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(feed.whatIsNotFinite(1), "");
  EXPECT_EQ(feed.whatIsNotFinite(2),
            "; input 'f' has nan or inf in sample 2, element 0, of '" +
                (folder / "f.npy") + "'");
}

TEST_F(ArrayFeed, WantsOneBatch) {
  auto error = [&] {
    DataFeed two;
    std::string file = folder / "a.npy";
    return two.open(executable.inputs, {"x=" + file + ",y=" + file, "", ""})
        .message();
  };
  executable.inputs.push_back({"y", DType::I64, {4, 3, 2}, 1});
  EXPECT_THAT(error(), HasSubstr("expected as many rows in a batch of input "
                                 "'y' as of 'x' (2), found 3"));
  for (TensorPlan &input : executable.inputs)
    input.shape[1] = 0;
  EXPECT_THAT(error(),
              HasSubstr("expected at least one row in a batch of input "
                        "'x', found none"));
}

TEST_F(ArrayFeed, WantsSamples) {
  executable.inputs[0].batchDim.reset();
  Status status =
      feed.open(executable.inputs, {"x=" + (folder / "a.npy"), "", ""});
  ASSERT_FALSE(status.ok());
  EXPECT_THAT(status.message(),
              HasSubstr("as data of input 'x': every batch has the same of it, "
                        "so that it has no samples: give it as a file of "
                        "--inputs"));
}

TEST_F(Feed, SaysWhenNothingFits) {
  addInput("floats", DType::F32);
  EXPECT_THAT(open(), HasSubstr("expected an input of integers [batch, "
                                "length] for the tokens of"));
}

} // namespace
