// What the bytes of a rank hold, byte for byte: the elements of terms. One text
// serves all ranks, and so does one memory.

#ifndef ACCEL_LIB_EQUIVALENCE_PLAN_MEMORY_H
#define ACCEL_LIB_EQUIVALENCE_PLAN_MEMORY_H

#include "Meaning.h"
#include <map>

namespace accel::equivalence {

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

/// Bytes of all spaces. What repeats (an entry, a turn of a loop) is followed
/// once for all times, so that what it reads of what was there before it must
/// stay.
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
  /// What happens until the end repeats.
  void beginRepeated() { scopes.push_back(++now); }
  void endRepeated() {
    scopes.pop_back();
    ++now;
  }
  /// Forgets what was written since what repeats began: of one call, another
  /// can count on nothing.
  void forgetWritten();

private:
  struct Entry {
    int64_t end;
    TermId term;
    int64_t first; ///< number of the element that begins the entry
    int64_t elementBytes;
    unsigned written, read; ///< when it was, the last time
  };
  /// A rank's own piece: what lies where is known only in its own words.
  struct OwnPiece {
    Place place;
    TermId term;
    unsigned written;
  };
  using Entries = std::map<int64_t, Entry>;

  /// The elements of a range; with `ofThisTime` those that were written since
  /// what repeats began, and no command reads them.
  TermId readRange(plan::Space space, int64_t begin, int64_t end,
                   mlir::Type element, int64_t bytes, bool ofThisTime);
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
  unsigned now = 0;
  llvm::SmallVector<unsigned> scopes{0}; ///< when what repeats began
};

} // namespace accel::equivalence

#endif // ACCEL_LIB_EQUIVALENCE_PLAN_MEMORY_H
