// Which dimensions of an entry's states tensor parallelism splits.

#ifndef ACCEL_LIB_PARALLEL_STRATEGY_CHOOSEDIMS_H
#define ACCEL_LIB_PARALLEL_STRATEGY_CHOOSEDIMS_H

#include "DimClasses.h"
#include "FusedDims.h"
#include "TensorAxes.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

namespace accel::parallel {

/// What stands on a state's argument; null if something else reads it.
dist::ConstraintOp findConstraint(mlir::BlockArgument argument);
mlir::Attribute getState(mlir::func::FuncOp entry,
                         mlir::BlockArgument argument);

/// Chooses on one entry.
class DimChooser {
public:
  /// The dimension of each state that is split, by its name; and whether it is
  /// with key heads, that ranks share.
  using Splits = llvm::DenseMap<mlir::Attribute, std::pair<unsigned, bool>>;

  DimChooser(mlir::func::FuncOp entry, dist::MeshOp mesh)
      : entry(entry), axes(getTensorAxes(mesh)), ranks(countTensorRanks(mesh)),
        keyRanks(mesh.findAxisSize(kKeyHeadsAxis).value_or(1)),
        plain(entry, nullptr, mesh), fused(entry, plain),
        classes(entry, &fused, mesh) {}
  Splits run(bool splitsVocabulary);
  /// A dimension of a class, and the class's size.
  struct Uneven {
    mlir::BlockArgument argument;
    unsigned dim;
    int64_t size;
    bool isVocabulary;
  };
  /// After `run`: the classes that would be split if their sizes allowed it.
  llvm::SmallVector<Uneven> getUneven();
  /// After `run`: tells of each kind of class that may be split what either way
  /// takes (lib/Cost/Decision.h).
  void tell();

private:
  bool isPlaced(mlir::BlockArgument argument);
  llvm::SmallDenseSet<unsigned> findPositions();
  /// The work saved for each byte.
  double getRatio(unsigned number) {
    const DimClasses::Class &each = classes.get(number);
    return double(each.flops) / double(each.bytes + 1);
  }
  double getGain(unsigned number);
  /// Those of `chosen` that a class excludes.
  llvm::SmallVector<unsigned>
  findRivals(unsigned number, const llvm::SetVector<unsigned> &chosen);
  llvm::SetVector<unsigned> choose(llvm::ArrayRef<unsigned> candidates);
  llvm::SmallDenseSet<unsigned> findVocabularies();
  void findKeyHeads(const llvm::SetVector<unsigned> &chosen);

  mlir::func::FuncOp entry;
  llvm::SmallVector<llvm::StringRef, 2> axes;
  int64_t ranks, keyRanks;
  DimClasses plain; ///< of which some are parts of others
  FusedDims fused;
  DimClasses classes;
  llvm::SmallDenseSet<unsigned> placed; ///< what somebody has split
  llvm::SmallDenseSet<unsigned> shared; ///< key heads that ranks share
  llvm::SmallVector<unsigned> wanted;   ///< what may be split
  llvm::SetVector<unsigned> chosen;     ///< of those, and what was placed
  /// Of states, those that nobody has split.
  llvm::SmallVector<std::pair<mlir::BlockArgument, unsigned>> dims;
  /// What may not, for its size, each with one of its dimensions.
  llvm::MapVector<unsigned, std::pair<mlir::BlockArgument, unsigned>> uneven;
};

} // namespace accel::parallel

#endif // ACCEL_LIB_PARALLEL_STRATEGY_CHOOSEDIMS_H
