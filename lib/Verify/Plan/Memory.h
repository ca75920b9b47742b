// What the bytes of a rank hold, byte for byte: the elements of terms. One text
// serves all ranks, and so does one memory.

#ifndef ACCEL_LIB_VERIFY_PLAN_MEMORY_H
#define ACCEL_LIB_VERIFY_PLAN_MEMORY_H

#include "Meaning.h"
#include <map>

namespace accel::verify {

/// A view in an arena.
struct Place {
  plan::Space space;
  int64_t begin, end; ///< bytes that any rank may touch
  int64_t base;       ///< where the view's buffer begins, and its slot
  int64_t limit;      ///< and where it ends
  IndexMap map;       ///< from `begin`, in elements; coordinates of the rank
  mlir::Type element;
  int64_t elementBytes;

  /// Whether they may have a byte in common. Views of columns of the same rows
  /// need not, though one ends after the other begins.
  bool touches(const Place &other) const;
  bool isSameAs(const Place &other) const {
    return space == other.space && begin == other.begin &&
           element == other.element && map == other.map;
  }
};

/// Bytes of all spaces. What the bytes hold when a round begins serves the
/// rounds after it as well, so that what a round reads of it must stay.
class Memory {
public:
  explicit Memory(Terms &terms) : terms(terms) {}

  /// The elements at a place; undefined where nothing is known, or where other
  /// elements than of that type lie.
  TermId read(const Place &place);
  /// Writes a term there; an error (at `op`) where the bytes of a view have too
  /// many gaps to be told apart.
  mlir::LogicalResult write(const Place &place, TermId term,
                            mlir::Operation *op);
  /// Forgets what lies at a place.
  mlir::LogicalResult release(const Place &place, mlir::Operation *op);
  /// From here on, what lies in memory must stay as it is if it is read, but
  /// for what `write` has put there since.
  void beginRound() { ++round; }

private:
  struct Entry {
    int64_t end;
    TermId term;
    int64_t first; ///< number of the element that begins the entry
    int64_t elementBytes;
    unsigned written; ///< round in which it was
    unsigned read;    ///< last round in which it was read
  };
  /// A rank's own piece: what lies where is known only in its own words.
  struct OwnPiece {
    Place place;
    TermId term;
    unsigned written;
  };
  using Entries = std::map<int64_t, Entry>;

  /// The elements of a range; with `ofThisRound` those that were written in
  /// it, and are not read by a command.
  TermId readRange(plan::Space space, int64_t begin, int64_t end,
                   mlir::Type element, int64_t bytes, bool ofThisRound);
  mlir::LogicalResult erase(plan::Space space, int64_t begin, int64_t end,
                            mlir::Operation *op);
  mlir::LogicalResult put(plan::Space space, int64_t begin, int64_t end,
                          TermId term, int64_t elementBytes,
                          mlir::Operation *op);
  mlir::LogicalResult writeRows(const Place &place, TermId term,
                                mlir::Operation *op);
  void cut(Entries &entries, int64_t at);

  Terms &terms;
  std::map<plan::Space, Entries> arenas;
  std::vector<OwnPiece> ownPieces;
  unsigned round = 0;
};

} // namespace accel::verify

#endif // ACCEL_LIB_VERIFY_PLAN_MEMORY_H
