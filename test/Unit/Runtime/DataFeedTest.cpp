// What tokens feed: which inputs, with what, and which piece of it.

#include "Feed/DataFeed.h"
#include "PlainMemory.h"
#include "TinyExecutable.h"

#include <gmock/gmock.h>

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
    executable.inputs.push_back({name, dtype, part.shape});
  }
  std::string open() {
    Status status = feed.open(
        executable.inputs, {options.data, options.dataType, options.dataLabels,
                            options.seed.value_or(executable.seed)});
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
        feed.prepare(read, coordinates, memory, finished);
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
  ASSERT_TRUE(feed.prepare(read, {}, memory, finished)->run(&address, 0).ok());
  EXPECT_EQ(values[6], 6);
  EXPECT_EQ(values[7], INT32_MAX); // a kernel refuses it, as it must
}

TEST_F(Feed, SaysWhenNothingFits) {
  addInput("floats", DType::F32);
  EXPECT_THAT(open(), HasSubstr("expected an input of integers [batch, "
                                "length] for the tokens of"));
}

} // namespace
