// Digests of the pieces that ranks read, against those of who read it all.

#include "Data/RangeDigest.h"
#include "TinyExecutable.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <numeric>
#include <unistd.h>

using namespace accel::rt;
using namespace accel::rt::test;

namespace {

struct DigestCase {
  std::vector<int64_t> value, padded;
  std::vector<size_t> order; ///< Dimensions as the file has them.
  std::vector<std::vector<std::string>> axes;
  std::optional<Interleaved> interleaved = std::nullopt;
};

class Digest : public ::testing::TestWithParam<DigestCase> {
protected:
  Digest() {
    const DigestCase &tested = GetParam();
    range.shape = tested.value;
    range.strides.resize(range.shape.size());
    range.offset = 5;
    int64_t stride = 1;
    for (size_t i = tested.order.size(); i-- > 0;) {
      range.strides[tested.order[i]] = stride;
      stride *= range.shape[tested.order[i]];
    }
    bytes.resize(static_cast<size_t>(stride) * 4);
    std::iota(bytes.begin(), bytes.end(), 1);
    range.path = folder / "w";
    file = FileHandle(open(range.path.c_str(), O_RDWR | O_CREAT, 0600));
    range.fd = file.get();
    part = {tested.padded, tested.axes, tested.interleaved};
    put();
  }
  void put() {
    ASSERT_TRUE(writeRange(range.fd, "w", 5, bytes.data(), bytes.size()).ok());
  }
  Coordinates at(int64_t rank) const { return Coordinates::of(mesh, rank); }
  /// The digest of a rank's piece as it reads it, through a buffer or not.
  uint64_t read(int64_t rank, bool transposed) {
    View view = contiguousView(0, part.shape);
    for (size_t d = 0; d < view.shape.size(); ++d)
      view.shape[d] /= at(rank).count(part.axes[d]);
    view.strides = rowMajorStrides(view.shape);
    std::vector<float> memory(static_cast<size_t>(numElements(view.shape)));
    if (transposed) {
      std::vector<int64_t> shape(view.shape.rbegin(), view.shape.rend());
      view.strides = rowMajorStrides(shape);
      std::reverse(view.strides.begin(), view.strides.end());
    }
    RangeBlocks blocks(range, part, at(rank));
    RangeDigest digest(blocks);
    PieceMover mover(range, part, view, at(rank));
    EXPECT_TRUE(mover.read(memory.data(), 0, nullptr, &digest).ok());
    return digest.value();
  }
  /// What the pieces must have, from all bytes in steps of 7.
  std::vector<uint64_t> expected() {
    RangeBlocks blocks(range, part, at(0));
    RangeDigest digest(blocks);
    for (size_t done = 0; done < bytes.size(); done += 7)
      digest.add(done, bytes.data() + done,
                 std::min<size_t>(7, bytes.size() - done));
    std::vector<uint64_t> result;
    for (int64_t rank = 0; rank < 4; ++rank)
      result.push_back(digest.valueOf(blocks.pieceOf(part, at(rank))));
    return result;
  }

  TemporaryFolder folder;
  std::vector<Axis> mesh{{"a", 2}, {"b", 2}};
  TensorRange range;
  Part part;
  std::vector<unsigned char> bytes;
  FileHandle file;
};

TEST_P(Digest, IsTheSameByPieces) {
  std::vector<uint64_t> wanted = expected();
  for (int64_t rank = 0; rank < 4; ++rank)
    for (bool transposed : {false, true})
      EXPECT_EQ(read(rank, transposed), wanted[rank]) << rank << transposed;
}

TEST_P(Digest, TellsEveryChangedBit) {
  std::vector<uint64_t> wanted = expected();
  for (size_t bit = 0; bit < bytes.size() * 8; bit += 3) {
    bytes[bit / 8] ^= 1 << bit % 8;
    put();
    bool differs = false;
    for (int64_t rank = 0; rank < 4; ++rank)
      differs |= read(rank, false) != wanted[rank];
    EXPECT_TRUE(differs) << bit;
    bytes[bit / 8] ^= 1 << bit % 8;
  }
}

TEST_P(Digest, OfTheWholeIsItsHash) {
  RangeBlocks whole;
  RangeDigest digest(whole);
  digest.add(0, bytes.data(), 3);
  digest.add(3, bytes.data() + 3, bytes.size() - 3);
  EXPECT_EQ(digest.value(), hashBytes(bytes.data(), bytes.size()));
}

INSTANTIATE_TEST_SUITE_P(
    Layouts, Digest,
    ::testing::Values(DigestCase{{4, 3}, {4, 3}, {0, 1}, {{"a", "b"}, {}}},
                      DigestCase{{4, 8}, {4, 8}, {0, 1}, {{}, {"b", "a"}}},
                      DigestCase{{4, 6}, {4, 6}, {1, 0}, {{"a"}, {}}},
                      DigestCase{{4, 6}, {4, 6}, {0, 1}, {{"b"}, {"a"}}},
                      DigestCase{
                          {4, 2, 6}, {4, 2, 6}, {2, 0, 1}, {{"a"}, {}, {"b"}}},
                      // Padded: the last pieces are short, or empty.
                      DigestCase{{5, 3}, {8, 3}, {0, 1}, {{"a", "b"}, {}}},
                      DigestCase{{3, 5}, {3, 8}, {0, 1}, {{}, {"a", "b"}}},
                      DigestCase{{3, 1}, {3, 4}, {0, 1}, {{}, {"a", "b"}}},
                      // One row, and another rank for each column of it.
                      DigestCase{{1, 2}, {4, 2}, {0, 1}, {{"a"}, {"b"}}},
                      DigestCase{{2, 1}, {2, 4}, {0, 1}, {{"b"}, {"a"}}},
                      DigestCase{{2, 1}, {2, 4}, {1, 0}, {{"b"}, {"a"}}},
                      DigestCase{{4, 6}, {4, 6}, {0, 1}, {{}, {}}},
                      // Parts of a dimension, a share of each for a rank; cut
                      // further, in either order of the file.
                      DigestCase{{3, 12},
                                 {3, 12},
                                 {0, 1},
                                 {{}, {"a"}},
                                 Interleaved{1, {8, 2, 2}, 2}},
                      DigestCase{{12, 3},
                                 {12, 4},
                                 {1, 0},
                                 {{"a"}, {"b"}},
                                 Interleaved{0, {4, 8}, 2}},
                      DigestCase{{2, 12},
                                 {2, 12},
                                 {1, 0},
                                 {{}, {"a", "b"}},
                                 Interleaved{1, {8, 4}, 2}}));

} // namespace
