// Which buffers of a plan hold something at which moment.

#ifndef ACCEL_LIB_PLAN_LIVENESS_H
#define ACCEL_LIB_PLAN_LIVENESS_H

#include "dialects/Plan/Plan.h"
#include "llvm/ADT/MapVector.h"

namespace accel::plan {

/// What a buffer holds, where its role does not say it.
enum class Content {
  Own,            ///< what its role says
  GatheredWeight, ///< a weight of a unit that other ranks have given their
                  ///< pieces of
  SecondaryCopy,  ///< this rank's part of what its group keeps of a weight
  WholeGradient,  ///< of a unit, before ranks have scattered it
  Gradient        ///< as the update reads it
};

/// The lives of a program's buffers over one call of its main entry, in the
/// order of its commands. What another stream uses is alive until the first
/// stream has waited for it. What is read before it is written, or outlives the
/// call, lives throughout.
class Liveness {
public:
  static Liveness compute(ProgramOp program);

  struct Held {
    BufferOp buffer;
    Content content;
  };
  /// What is alive in an arena at the moment when that is most.
  llvm::SmallVector<Held> getPeak(Space space) const;
  /// Of each group of buffers, at each moment the bytes that are alive in an
  /// arena, each buffer rounded up to a multiple of `alignment`. Those of which
  /// `groupOf` gives none are left out.
  std::vector<std::vector<int64_t>> getProfiles(
      Space space, int64_t alignment, unsigned groups,
      llvm::function_ref<std::optional<unsigned>(BufferOp)> groupOf) const;
  /// The most units of which such a thing is alive at once.
  int64_t getUnitsInFlight(Content content) const;
  /// The most bytes of such a thing that are alive at once.
  int64_t getMostBytes(Content content) const;
  /// Of all copies; what lies between them is no part of it.
  static int64_t getBytes(BufferOp buffer);

private:
  friend class Walk;
  struct Life {
    int64_t first, last;
    bool holds(int64_t moment) const {
      return first <= moment && moment <= last;
    }
  };
  /// What a command has left in a buffer, until another writes it.
  struct Holding : Life {
    Content content = Content::Own;
    mlir::StringAttr unit;
    bool inPlace = false; ///< made of what was there before
  };
  struct Lives {
    llvm::SmallVector<Life, 1> lives; ///< several where each micro-batch
                                      ///< writes the buffer anew
    llvm::SmallVector<Holding, 2> holdings;
  };
  /// Of buffers with bytes of their own.
  llvm::MapVector<mlir::Operation *, Lives> buffers;
  int64_t moments = 0;
};

} // namespace accel::plan

#endif // ACCEL_LIB_PLAN_LIVENESS_H
