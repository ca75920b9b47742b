// Where in a body copies that go on beside its commands begin and end, so that
// the computation does not wait for them and as little as can be is there
// twice.

#ifndef ACCEL_LIB_PLAN_MEMORY_COPYPLACES_H
#define ACCEL_LIB_PLAN_MEMORY_COPYPLACES_H

#include "lib/Plan/BufferTable.h"

#include <vector>

namespace accel::plan {

/// The ops of a body and what is copied for some of them, in seconds by the
/// table of the target (lib/Cost/Machine.h). One stream copies, in the order of
/// these ops.
class CopyPlaces {
public:
  /// Copies of what an op makes begin behind it, and are to end as soon as they
  /// can; of what it reads they end in front of it, and are to begin as late as
  /// they can.
  enum class Copies { Behind, Ahead };

  CopyPlaces(Copies copies, BodyOp body, const BufferTable &buffers,
             mlir::SymbolTableCollection &symbols);

  /// Adds bytes that are copied for an op of the body. Ops come in their order.
  void add(mlir::Operation *op, int64_t bytes);
  /// Finds the places, when all are added.
  void place();

  /// For how long the body has nothing to do with what is copied for an op:
  /// behind the end of the copy, or before it begins. Less than 0 where the
  /// body is too short for the copy.
  double getAway(mlir::Operation *op) const { return at(op).away; }
  /// How long the copies for an op take.
  double getSeconds(mlir::Operation *op) const { return at(op).seconds; }
  /// Of copies behind `op`: in front of which op they have ended; null: at the
  /// end of the body. Of copies ahead of it: behind which op they begin; null:
  /// with the body.
  mlir::Operation *getPlace(mlir::Operation *op) const { return at(op).other; }

  /// What part of its time the body waits for the copies for these ops.
  double getWaiting(llvm::ArrayRef<mlir::Operation *> ops) const;

private:
  struct Copied {
    mlir::Operation *op;
    size_t place;
    double seconds = 0, away = 0;
    mlir::Operation *other = nullptr;
  };
  const Copied &at(mlir::Operation *op) const {
    return copied[numbers.find(op)->second];
  }
  void placeBehind();
  void placeAhead();

  Copies copies;
  std::vector<mlir::Operation *> ops;
  std::vector<double> seconds; ///< of each op of the body
  llvm::DenseMap<mlir::Operation *, size_t> places;
  std::vector<Copied> copied;
  llvm::DenseMap<mlir::Operation *, size_t> numbers; ///< of these
};

} // namespace accel::plan

#endif // ACCEL_LIB_PLAN_MEMORY_COPYPLACES_H
