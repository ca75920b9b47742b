// Whether views share bytes, and how names are printed: small functions that
// stand between a file's author and the runtime's memory or a terminal.

#include "Format/Overlap.h"
#include "Base/Text.h"
#include "TinyExecutable.h"

#include <gmock/gmock.h>

using namespace accel::rt;
using namespace accel::rt::test;

namespace {

View viewOf(std::vector<int64_t> shape, std::vector<int64_t> strides) {
  View view = contiguousView(0, shape);
  view.strides = std::move(strides);
  return view;
}

/// By looking at every byte.
bool shareByLooking(int64_t a, const View &one, int64_t b, const View &other) {
  auto bytesOf = [](int64_t begin, const View &view) {
    std::set<int64_t> found = {begin};
    for (size_t dim = 0; dim < view.shape.size(); ++dim) {
      std::set<int64_t> next;
      for (int64_t at : found)
        for (int64_t i = 0; i < view.shape[dim]; ++i)
          next.insert(at + i * view.strides[dim] * 4);
      found = next;
    }
    return found;
  };
  for (int64_t x : bytesOf(a, one))
    for (int64_t y : bytesOf(b, other))
      if (x < y + 4 && y < x + 4)
        return true;
  return false;
}

TEST(Overlap, IsThatOfTheElements) {
  std::vector<View> views = {viewOf({}, {}),
                             viewOf({6}, {1}),
                             viewOf({3}, {2}),
                             viewOf({3, 2}, {8, 1}),
                             viewOf({2, 3}, {1, 8}),
                             viewOf({2, 2}, {6, 3}),
                             viewOf({3, 2, 2}, {9, 4, 1}),
                             viewOf({2, 2}, {8, 0}),
                             viewOf({4}, {5})};
  for (const View &one : views)
    for (const View &other : views)
      for (int64_t at = 0; at < 120; at += 4)
        EXPECT_EQ(format::shareBytes(40, one, at, other),
                  shareByLooking(40, one, at, other));
}

TEST(Overlap, TakesNoTimeForViewsThatAreWovenInto) {
  View one = viewOf({1 << 20, 1 << 20}, {int64_t(1) << 25, 16}),
       other = viewOf({1 << 20, 1 << 20}, {(int64_t(1) << 25) + 16, 16});
  EXPECT_TRUE(format::shareBytes(0, one, 8, other)); // nobody knows in time
}

TEST(Printable, WritesWhatATerminalWouldObey) {
  EXPECT_EQ(printable("Grüße/w_1.bias"), "Grüße/w_1.bias");
  EXPECT_EQ(printable(std::string("a\n\r\t\x1b[31m\0b", 11)),
            "a\\n\\r\\t\\x1b[31m\\x00b");
  EXPECT_EQ(printable("a\xff"
                      "b\xc3"),
            "a\\xffb\\xc3");
  EXPECT_EQ(printable("a\u202e"
                      "b\u2028c\u0085"),
            "a\\u202eb\\u2028c\\u0085");
  EXPECT_EQ(printable(printable("a\n")), printable("a\n"));
  EXPECT_EQ(inQuotes("a\nb"), "'a\\nb'");
  EXPECT_EQ(inQuotes(std::string(4096, 'p')).size(), 4098u); // a path is whole
  EXPECT_EQ(inQuotes(std::string(300000, 'n')),
            "'" + std::string(200, 'n') + "…' (300000 bytes)");
}

TEST(Printable, KnowsNames) {
  EXPECT_TRUE(isText("Grüße \n"));
  EXPECT_FALSE(isText(std::string("a\0b", 3)));
  EXPECT_FALSE(isText("\xc0\xaf"));     // not the shortest form
  EXPECT_FALSE(isText("\xed\xa0\x80")); // half of a pair
}

} // namespace
