// The rows of a loss: the product that makes its logits, and all that is done
// to these, forward and backward, row by row.

#ifndef ACCEL_LIB_PARALLEL_LOSS_LOSSROWS_H
#define ACCEL_LIB_PARALLEL_LOSS_LOSSROWS_H

#include "RowPlaces.h"
#include "dialects/NN/NN.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SetVector.h"

namespace accel::parallel {

/// The product that makes the logits of a loss, by itself or through ops that
/// are done element by element, through views and slices; null, and why, if
/// there is none, or several.
nn::MatmulOp findHead(nn::CrossEntropyOp loss, std::string &why);

/// What reads logits whose rows stand along a dimension of a head's result, and
/// what lies between such ops: it can be done to some rows after others.
struct LossRows {
  mutable nn::MatmulOp head;                  ///< op handles are pointers
  unsigned dim = 0;                           ///< of its result
  llvm::SetVector<mlir::Operation *> members; ///< in their order, head included
  /// Where results of members have the rows; members that have added over them
  /// are not there.
  llvm::DenseMap<mlir::Value, RowPlace> places;

  /// How a chunk gets its part of a value that no member makes, whose rows
  /// stand at `place`.
  enum class Part {
    Cut,  ///< out of the value
    Made, ///< by what makes the value, of parts of what that reads
    None  ///< all of it would be as large as logits
  };
  Part choosePart(mlir::Value value, RowPlace place) const;
  /// Where an operand of a member has the rows; none if it is the same for all.
  mlir::FailureOr<std::optional<RowPlace>>
  findOperandRows(mlir::Operation *op, unsigned number) const;

  /// None, and why, where the loss or its gradient cannot be had by rows: what
  /// waits for all of them, moves logits between ranks, or gives them away.
  static std::optional<LossRows> findAlong(nn::MatmulOp head, unsigned dim,
                                           std::string &why);
  /// The dimension of a head's result of which `chunks` are equal parts whose
  /// rows follow each other: all before it are 1.
  static std::optional<unsigned> findDim(llvm::ArrayRef<int64_t> shape,
                                         int64_t chunks);
  /// Along that one.
  static std::optional<LossRows> find(nn::MatmulOp head, int64_t chunks,
                                      std::string &why);
};

} // namespace accel::parallel

#endif // ACCEL_LIB_PARALLEL_LOSS_LOSSROWS_H
