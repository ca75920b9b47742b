// Copies of states: every byte that a view covers, once, from memory that the
// host reaches and from memory that it does not.

#include "State/StateCopy.h"
#include "Base/ThreadPool.h"
#include "PlainMemory.h"

#include <gmock/gmock.h>

#include <cstring>
#include <numeric>

using namespace accel::rt;
using namespace accel::rt::test;

namespace {

/// Where the host has no business but by copies: all of it, or what lies behind
/// an address.
struct FarMemory : PlainMemory {
  explicit FarMemory(const void *near = nullptr) : near(near) {}
  bool isHostMemory(Address address) const override {
    return address.value < reinterpret_cast<uint64_t>(near);
  }
  Status download(void *target, Address source, const Rows &rows) override {
    ++downloads;
    downloadRows(target, reinterpret_cast<const char *>(source.value), rows);
    return fails ? Status::error("no device") : Status();
  }
  const void *near;
  int downloads = 0;
  bool fails = false;
};

View view(std::vector<int64_t> shape, std::vector<int64_t> strides) {
  View made;
  made.dtype = DType::F32;
  made.shape = std::move(shape);
  made.strides = std::move(strides);
  return made;
}

TEST(StateCopy, HasWhatViewsCover) {
  std::vector<float> values(3 << 20);
  ThreadPool pool(3, 0);
  PlainMemory near;
  FarMemory far, both(values.data() + 50);
  for (Memory *memory :
       {static_cast<Memory *>(&near), static_cast<Memory *>(&far),
        static_cast<Memory *>(&both)}) {
    std::iota(values.begin(), values.end(), 0.0f);
    Address start = PlainMemory::of(values.data());
    StateCopy copy;
    copy.add(start + 4 * (1 << 20), view({1 << 21}, {1})); // two chunks
    copy.add(start + 4 * 8, view({2, 3}, {10, 1}));
    copy.add(start + 4 * 13, view({2, 2}, {10, 1})); // overlaps, and goes on
    copy.add(start + 4 * 100, view({0, 5}, {5, 1})); // nothing
    std::atomic<uint64_t> counter{0};
    ASSERT_TRUE(copy.allocate(&counter).ok());
    EXPECT_EQ(copy.bytes(), 4u * (1 << 21) + 128); // 8 to 24, by lines
    EXPECT_GE(counter.load(), copy.bytes());
    ASSERT_TRUE(copy.copy(*memory, pool).ok());
    std::fill(values.begin(), values.end(), -1.0f); // a step goes on
    for (auto [at, count] : {std::pair(8, 17), std::pair(1 << 20, 1 << 21)})
      for (int i = 0; i < count; ++i) {
        float found;
        std::memcpy(&found, copy.find(start + 4 * (at + i)), sizeof found);
        ASSERT_EQ(found, static_cast<float>(at + i));
      }
  }
  EXPECT_EQ(far.downloads, 3);
  EXPECT_EQ(both.downloads, 2);
  far.fails = true;
  StateCopy copy;
  copy.add(PlainMemory::of(values.data()), view({4}, {1}));
  ASSERT_TRUE(copy.allocate(nullptr).ok());
  EXPECT_EQ(copy.copy(far, pool).message(), "no device");
}

TEST(StateCopy, SaysWhatToDoWithoutMemory) {
  StateCopy copy;
  copy.add({4096}, view({int64_t(1) << 57}, {1}));
  EXPECT_THAT(
      copy.allocate(nullptr).message(),
      testing::AllOf(
          testing::HasSubstr("cannot set aside 576460752303423488 bytes "
                             "for a copy of the states"),
          testing::HasSubstr("--checkpoint-sync does without it")));
}

} // namespace
