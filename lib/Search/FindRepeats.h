// Finds what repeats itself in a list.

#ifndef ACCEL_LIB_SEARCH_FINDREPEATS_H
#define ACCEL_LIB_SEARCH_FINDREPEATS_H

#include "llvm/ADT/ArrayRef.h"
#include <vector>

namespace accel::search {

/// `length` items of which each is like the one `period` behind it, as far as
/// there is one: `countCopies` times as many, and some that are left over.
struct Repeat {
  unsigned begin, period, length;

  unsigned countCopies() const { return length / period; }
};

/// Repeats of at least `fewest` copies that do not overlap, the longest first;
/// of two as long the one with the shorter period. Items are alike if their
/// hashes are.
std::vector<Repeat> findRepeats(llvm::ArrayRef<size_t> hashes, unsigned fewest);

} // namespace accel::search

#endif // ACCEL_LIB_SEARCH_FINDREPEATS_H
