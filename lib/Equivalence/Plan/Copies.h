// Buffers that are kept for micro-batches in flight: what a run finds in its
// own copies is what an earlier run on the same micro-batch has left there.

#ifndef ACCEL_LIB_EQUIVALENCE_PLAN_COPIES_H
#define ACCEL_LIB_EQUIVALENCE_PLAN_COPIES_H

#include "Memory.h"
#include "Renaming.h"
#include "dialects/Plan/RunList.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

namespace accel::equivalence {

/// A run of a body leaves the same in its copies on every micro-batch, but for
/// the name of the micro-batch. This is found, not believed: what each run of
/// the list leaves (of a loop, one turn that stands for all) is written down
/// with the name of any micro-batch, and every other run of the body must leave
/// that as well. Then a run finds it, under its own micro-batch's name, if
/// - the last run that has used this copy was that body's, on this micro-batch,
///   which is looked up run by run, turn by turn: runs are few, whatever their
///   commands are (where it is another body's in some turns of a loop, the run
///   finds what they all leave alike); and
/// - nothing else has written bytes of any copy since.
/// Of everything else in its copies a run knows nothing. So a schedule costs
/// what its text costs, however many micro-batches it has and keeps in flight.
///
/// A buffer without copies is followed so, as one that has one, where a turn of
/// a loop finds in it what another has left for the same micro-batch. Elsewhere
/// what a turn finds, it has written itself.
class Copies {
public:
  Copies(plan::ProgramOp program, Terms &terms);

  /// All copies of a buffer; null if it is none of these.
  const CopiedBytes *find(plan::BufferOp buffer) const;
  /// Those that have bytes between two of `space`, but for one buffer's.
  void
  forEachTouching(plan::Space space, int64_t begin, int64_t end,
                  const CopiedBytes *butFor,
                  llvm::function_ref<void(const CopiedBytes &)> visit) const;

  /// An entry's runs come next: no copy holds anything yet.
  void beginEntry(plan::EntryOp entry);
  /// Finds what a run on a micro-batch begins with.
  void beginRun(plan::RunOp run, MicroBatch microBatch);
  /// Writes down what it has left; an error if other micro-batches have been
  /// taken to find something else.
  mlir::LogicalResult endRun(plan::RunOp run, MicroBatch microBatch);
  /// The copies of the micro-batch at hand, at the places of the first ones: of
  /// those buffers that the run's body uses.
  Memory &get() { return *memory; }
  bool isInUse(const CopiedBytes &area) const {
    return llvm::is_contained(inUse, &area - areas.data());
  }

private:
  using BodySet = llvm::SmallSetVector<mlir::StringAttr, 4>;
  /// Copies that the same runs use and overwrite.
  struct Group {
    int64_t slots;
    BodySet users;
    BodySet others; ///< that write bytes of copies through other buffers
    /// Of each run the bodies whose runs have left what it finds, in a loop
    /// those of all turns; null among them: nobody has in some.
    llvm::DenseMap<mlir::Operation *, llvm::SmallVector<mlir::StringAttr, 1>>
        sources;
    BodySet asked; ///< bodies that are such

    bool isLike(const Group &other) const {
      return slots == other.slots && users == other.users &&
             others == other.others;
    }
  };
  /// What a body leaves in a buffer's copy.
  struct Left {
    llvm::SmallVector<Memory::Piece> pieces;
    llvm::SmallVector<Memory::OwnPiece> own;
    bool isFound = false; ///< a run has begun with it
  };
  /// Of each buffer the bodies that use it, and of each body the buffers that
  /// it writes.
  struct Uses {
    llvm::MapVector<mlir::StringAttr, BodySet> users;
    llvm::MapVector<mlir::StringAttr, llvm::SetVector<mlir::StringAttr>>
        written;
  };
  static Uses readBodies(plan::ProgramOp program);
  static bool isCarriedOver(plan::ProgramOp program, const BodySet &users);
  void follow(Group &group, llvm::ArrayRef<plan::RunTurn> runs);
  static Left rename(Renaming &renaming, const Left &left);
  /// What is in both.
  static void intersect(Left &left, const Left &other);
  std::optional<Left> findLeft(llvm::ArrayRef<mlir::StringAttr> sources,
                               unsigned area);

  Terms &terms;
  MicroBatch any;
  std::vector<CopiedBytes> areas; ///< by place
  std::vector<int64_t> reaches;   ///< where those up to here end, in a space
  llvm::DenseMap<mlir::StringAttr, unsigned> ofBuffer;
  llvm::DenseMap<mlir::StringAttr, llvm::SmallVector<unsigned>> ofBody;
  std::vector<Group> groups;
  llvm::ArrayRef<unsigned> inUse; ///< by the run at hand
  llvm::DenseMap<std::pair<mlir::StringAttr, unsigned>, Left> left;
  std::optional<Memory> memory;
};

} // namespace accel::equivalence

#endif // ACCEL_LIB_EQUIVALENCE_PLAN_COPIES_H
