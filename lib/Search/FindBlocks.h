// The blocks of an entry: what repeats itself in its arguments and ops, joined
// by what it reads of each other.

#ifndef ACCEL_LIB_SEARCH_FINDBLOCKS_H
#define ACCEL_LIB_SEARCH_FINDBLOCKS_H

#include "FindRepeats.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/EquivalenceClasses.h"
#include "llvm/ADT/SetVector.h"
#include <optional>

namespace accel::search {

using States = llvm::SetVector<mlir::StringAttr>;

/// A copy of what repeats: which repeat, and which of its copies.
using Copy = std::pair<unsigned, unsigned>;

/// Blocks in their order, each of as many copies of each of the same repeats:
/// one, or those of the layers that are computed again together.
struct Stretch {
  /// Of each repeat the first copy that is part of the first block, and how one
  /// goes on from copy to copy: 1 or -1.
  llvm::SmallDenseMap<unsigned, std::pair<unsigned, int>, 8> starts;
  unsigned length = 0; ///< in blocks
  unsigned copies = 1; ///< that a block has of a repeat
};

/// Of one entry, whose items are its arguments and ops, in their order. Copies
/// begin anywhere within a layer, of a forward elsewhere than of its backward;
/// but as many blocks away lies what is alike.
class Blocks {
public:
  /// Stretches of more than `fewest` blocks. Copies of arguments begin where
  /// one of `states` does, if they have one.
  Blocks(mlir::func::FuncOp entry, const States &states, unsigned fewest);

  llvm::ArrayRef<Stretch> getStretches() const { return stretches; }
  llvm::ArrayRef<mlir::Operation *> getOps() const { return ops; }
  unsigned getNumArguments() const { return arguments; }

  /// Where an item is: of which stretch, which block, which of its copies of
  /// which repeat.
  struct Place {
    unsigned stretch, block, copy, repeat, offset;
  };
  std::optional<Place> findPlace(unsigned item) const;
  /// The stretch next to an item that is of none of its blocks, but of what
  /// they repeat, and its block: -1 in front of the first, or as many as there
  /// are.
  std::optional<std::pair<unsigned, int>> findNext(unsigned item) const;
  /// The item that a value is, or is made by; none of one made elsewhere.
  std::optional<unsigned> findItem(mlir::Value value) const;
  std::optional<unsigned> findItem(mlir::Operation *op) const;
  /// The item at a place of another block.
  unsigned getItem(const Place &place, unsigned block) const;
  /// Null of an argument.
  mlir::Operation *getOp(unsigned item) const {
    return item < arguments ? nullptr : ops[item - arguments];
  }
  /// The state that an argument stands for; null of an input.
  mlir::StringAttr getState(unsigned argument) const;
  std::optional<unsigned> findArgument(mlir::StringAttr state) const;

private:
  /// What a block has of each repeat.
  using Copies = llvm::SmallDenseMap<unsigned, unsigned, 8>;

  void joinCopies();
  void join(Copy one, Copy other);
  void findStretches(unsigned fewest);
  void addStretch(llvm::ArrayRef<Copies> of, unsigned from, unsigned fewest);
  /// How many of the copies of a repeat, from one on, are computed again
  /// together; none where they are not all as many.
  std::optional<unsigned> countTogether(unsigned repeat, unsigned first,
                                        int step, unsigned copies) const;
  std::optional<Copy> findCopy(unsigned item) const;

  mutable mlir::func::FuncOp entry;
  unsigned arguments;
  std::vector<mlir::Operation *> ops;
  llvm::DenseMap<mlir::Operation *, unsigned> positions;
  llvm::DenseMap<mlir::StringAttr, unsigned> argumentOf; ///< by state
  std::vector<Repeat> repeats;
  std::vector<std::optional<unsigned>> repeatOf; ///< by item
  llvm::EquivalenceClasses<Copy> joined;
  std::vector<Stretch> stretches;
  /// Of each copy, its stretch, and how many copies of its repeat are in front.
  llvm::DenseMap<Copy, std::pair<unsigned, unsigned>> blockOf;
};

} // namespace accel::search

#endif // ACCEL_LIB_SEARCH_FINDBLOCKS_H
