// Numbers of bytes as people write them.

#include "lib/Names/Bytes.h"

#include "gtest/gtest.h"

using namespace accel;

static int64_t resolve(llvm::StringRef text, int64_t memory = 1000) {
  auto budget = MemoryBudget::parse(text);
  if (!budget) {
    llvm::consumeError(budget.takeError());
    return -1;
  }
  return budget->resolve(memory);
}

TEST(BytesTest, ReadsBudgets) {
  EXPECT_EQ(resolve("12884901888"), 12884901888);
  EXPECT_EQ(resolve("9007199254740993"), 9007199254740993); // 2^53 + 1
  EXPECT_EQ(resolve("12GiB"), 12884901888);
  EXPECT_EQ(resolve("12 GiB"), 12884901888);
  EXPECT_EQ(resolve("12G"), 12884901888);
  EXPECT_EQ(resolve("1.5KiB"), 1536);
  EXPECT_EQ(resolve("2MB"), 2000000);
  EXPECT_EQ(resolve("1TiB"), int64_t(1) << 40);
  EXPECT_EQ(resolve("7B"), 7);
  EXPECT_EQ(resolve("80%"), 800);
  EXPECT_EQ(resolve("12.5%"), 125);
  EXPECT_EQ(resolve("100%"), 1000);
}

TEST(BytesTest, RefusesWhatIsNoBudget) {
  for (llvm::StringRef text :
       {"", "0", "-1", "0%", "101%", "GiB", "12Gib", "12 gigabytes", "1e9",
        "0.1", "12KiBs", "nan", "9999999999999TiB", "1.2.3"})
    EXPECT_EQ(resolve(text), -1) << text.str();
}

TEST(BytesTest, KnowsTheMachine) { EXPECT_GT(getMachineMemory(), 1 << 20); }
