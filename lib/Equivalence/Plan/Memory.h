// What the bytes of a rank hold, byte for byte: the elements of terms. One text
// serves all ranks, and so does one memory.

#ifndef ACCEL_LIB_EQUIVALENCE_PLAN_MEMORY_H
#define ACCEL_LIB_EQUIVALENCE_PLAN_MEMORY_H

#include "Meaning.h"
#include "llvm/ADT/SmallVector.h"
#include <map>

namespace accel::equivalence {

/// All copies of a buffer.
struct CopiedBytes {
  plan::BufferOp buffer;
  plan::Space space;
  int64_t begin, end; ///< of them all
  int64_t bytes;      ///< of one
  unsigned group = 0; ///< of those that the same runs use
};

/// A view in an arena.
struct Place {
  plan::Space space;
  int64_t begin, end; ///< bytes that any rank may touch
  int64_t base;       ///< where the view's buffer begins
  int64_t limit;      ///< and where it ends
  /// Of a buffer with copies: the place is that in the first one.
  const CopiedBytes *copies = nullptr;
  IndexMap map; ///< from `begin`, in elements; coordinates of the rank
  mlir::Type element;
  int64_t elementBytes;

  /// Whether they may have a byte in common. Views of columns of the same rows
  /// need not, though one ends after the other begins.
  bool touches(const Place &other) const;
  bool isSameAs(const Place &other) const {
    return space == other.space && begin == other.begin &&
           copies == other.copies && element == other.element &&
           map == other.map;
  }
  /// Bytes that it may touch on any micro-batch.
  int64_t first() const { return copies ? copies->begin : begin; }
  int64_t last() const { return copies ? copies->end : end; }
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
  /// What was written at once with what lies without gaps at a place, and the
  /// number of the place's first element in it; none if it was several times.
  std::optional<std::pair<TermId, int64_t>> findWhole(const Place &place) const;
  /// Writes a term there; an error (at `op`) where the bytes of a view have too
  /// many gaps to be told apart.
  mlir::LogicalResult write(const Place &place, TermId term,
                            mlir::Operation *op);
  /// Forgets what lies between two bytes.
  mlir::LogicalResult erase(plan::Space space, int64_t begin, int64_t end,
                            mlir::Operation *op);
  /// What happens until the end repeats.
  void beginRepeated() { scopes.push_back(++now); }
  void endRepeated() {
    scopes.pop_back();
    ++now;
  }
  /// Forgets what was written since what repeats began: of one call, another
  /// can count on nothing.
  void forgetWritten();

  /// Elements of a term that lie side by side, from the one numbered `first`
  /// on.
  struct Piece {
    int64_t begin, end;
    TermId term;
    int64_t first, elementBytes;

    bool operator==(const Piece &other) const {
      return std::tuple(begin, end, term, first, elementBytes) ==
             std::tuple(other.begin, other.end, other.term, other.first,
                        other.elementBytes);
    }
  };
  /// A rank's own piece: what lies where is known only in its own words.
  struct OwnPiece {
    Place place;
    TermId term;
    unsigned written = 0;

    bool operator==(const OwnPiece &other) const {
      return place.isSameAs(other.place) && place.end == other.place.end &&
             term == other.term;
    }
  };
  /// What lies between two bytes, and not beyond them.
  llvm::SmallVector<Piece> list(plan::Space space, int64_t begin,
                                int64_t end) const;
  llvm::SmallVector<OwnPiece> listOwn(plan::Space space, int64_t begin,
                                      int64_t end) const;
  /// Puts it where nothing lies.
  void put(plan::Space space, const Piece &piece);
  void put(OwnPiece piece);

private:
  struct Entry {
    int64_t end;
    TermId term;
    int64_t first; ///< number of the element that begins the entry
    int64_t elementBytes;
    unsigned written, read; ///< when it was, the last time
  };
  using Entries = std::map<int64_t, Entry>;

  /// The elements of a range; with `ofThisTime` those that were written since
  /// what repeats began, and no command reads them.
  TermId readRange(plan::Space space, int64_t begin, int64_t end,
                   mlir::Type element, int64_t bytes, bool ofThisTime);
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
