// What repeats itself in a list.

#include "lib/Search/FindRepeats.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

using accel::search::findRepeats;
using accel::search::Repeat;

static std::vector<size_t> hash(llvm::StringRef text) {
  std::vector<size_t> hashes;
  for (char c : text)
    hashes.push_back(size_t(c) << 8);
  return hashes;
}

static std::vector<std::string> find(llvm::StringRef text,
                                     unsigned fewest = 2) {
  std::vector<std::string> found;
  for (const Repeat &repeat : findRepeats(hash(text), fewest))
    found.push_back(std::to_string(repeat.begin) + ": " +
                    std::to_string(repeat.countCopies()) + " of " +
                    std::to_string(repeat.period));
  return found;
}

using testing::ElementsAre;
using testing::IsEmpty;

TEST(FindRepeats, FindsLayersBetweenOthers) {
  EXPECT_THAT(find("wabcabcabcz"), ElementsAre("1: 3 of 3"));
  EXPECT_THAT(find("abcdef"), IsEmpty());
  EXPECT_THAT(find(""), IsEmpty());
}

TEST(FindRepeats, TakesTheShorterPeriod) {
  EXPECT_THAT(find("abababab"), ElementsAre("0: 4 of 2"));
}

TEST(FindRepeats, LeavesWhatIsOverOut) {
  EXPECT_THAT(find("abcabcabxy"), ElementsAre("0: 2 of 3"));
}

TEST(FindRepeats, TakesTheLongestFirst) {
  // Within a layer something repeats itself, too.
  EXPECT_THAT(find("xaabxaabxaab"), ElementsAre("0: 3 of 4"));
  EXPECT_THAT(find("abcabcabc.qqq"), ElementsAre("0: 3 of 3", "10: 3 of 1"));
}

TEST(FindRepeats, HasAtLeastSoManyCopies) {
  EXPECT_THAT(find("abcabcabc", 3), ElementsAre("0: 3 of 3"));
  EXPECT_THAT(find("abcabcabc", 4), IsEmpty());
}
