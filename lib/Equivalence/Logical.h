// The logical program, to be looked up.

#ifndef ACCEL_LIB_EQUIVALENCE_LOGICAL_H
#define ACCEL_LIB_EQUIVALENCE_LOGICAL_H

#include "Views.h"
#include "dialects/NN/NN.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringMap.h"

#include <unordered_map>

namespace accel::equivalence {

/// Whether a value is one of the update: behind the mark of a gradient.
bool isMarked(mlir::Value value);

/// An entry of the logical program, by what its values are used for. Where a
/// value is placed (dist.reshard, dist.constraint) and where the update begins
/// (nn.gradient) does not change what it is: such ops are looked through. Ops
/// that are the same function of the same values are one.
class Logical {
public:
  using Ops = llvm::SetVector<mlir::Operation *>;

  explicit Logical(mlir::func::FuncOp entry);
  ~Logical();
  Logical(const Logical &) = delete;
  Logical &operator=(const Logical &) = delete;

  /// The value without the ops that are looked through, the first of its kind.
  mlir::Value rootOf(mlir::Value value) const;
  /// The ops that read a root.
  const Ops &getReaders(mlir::Value root) const;
  /// Those of them with the name of an op, and of slices its starts and steps:
  /// all others are other functions.
  const Ops &getReaders(mlir::Value root, mlir::Operation *like) const;
  /// The ops that read what is equal elements, each of them this.
  const Ops &getReaders(mlir::Attribute element) const;
  /// What all elements of a root are; null where they are not known to be
  /// equal.
  mlir::Attribute getSplat(mlir::Value root) const {
    return splats.lookup(root);
  }
  /// The ops without operands that have a name.
  const Ops &getSources(mlir::OperationName name) const;

  /// A root as a view of what reshapes and transposes have made it of.
  const View &getView(mlir::Value root) const;
  /// The roots that are views of the root of a view.
  llvm::ArrayRef<mlir::Value> getViews(mlir::Value root) const;

  /// What an op that is linear in an operand makes of a sum, or a difference,
  /// is that of what it makes of the terms: writes the program's `op`, whose
  /// `operand` is a sum in which `term` is, that way too. The op of `term` can
  /// be looked up then, and the sum of it and the others' is known as the
  /// result of `op`.
  void distribute(mlir::Operation *op, unsigned operand, mlir::Value term);
  /// What is done to each matrix by itself may be done to a stack of them, with
  /// so many of zeros behind: writes that, of ops with the same attributes on
  /// matrices [m, n] of one type. What is cut out of the result is what the ops
  /// make.
  void stack(llvm::ArrayRef<nn::NewtonSchulzOp> ops, int64_t zeros);
  /// Whether a value is a root, or made of it by sums and differences.
  bool isSumOf(mlir::Value sum, mlir::Value term) const;
  /// The ops with a name that read a sum, or difference, in which `term` is.
  llvm::SmallVector<mlir::Operation *>
  findReadersOfSums(mlir::OperationName name, mlir::Value term) const;
  /// The two values of which a root is the sum; none if it is none.
  std::optional<std::pair<mlir::Value, mlir::Value>>
  getTerms(mlir::Value root) const;
  /// What is added up to the sum of some roots, in some order; nothing if that
  /// is too much to compare.
  std::vector<mlir::Value> getLeaves(std::vector<mlir::Value> values) const;
  /// The roots that are sums of just these leaves, in whatever order they are
  /// added.
  llvm::SmallVector<mlir::Value> findSums(llvm::ArrayRef<mlir::Value> leaves);
  /// What a sum of a distributed op's results, or what computes the definition
  /// of an op, is in the program; none for others.
  mlir::Value getSumOf(mlir::Value added) const { return sums.lookup(added); }

  /// The type that terms of gradients may be rounded to between ranks; null if
  /// the program declares none.
  mlir::Type getWire() const { return wire; }
  /// Whether nothing but gradients is made of a root: no rounding of it shows
  /// anywhere else.
  bool isForGradients(mlir::Value root);

  /// Arguments, and roots of results.
  llvm::StringMap<mlir::Value> inputs, states, outputs, newStates;
  /// The order in which the program has states and outputs
  /// (`dist.interleaved`), if it is another than files have.
  llvm::StringMap<mlir::Attribute> stateOrders, outputOrders;

private:
  void add(mlir::Operation *op);
  void noteSplat(mlir::Operation *op);
  /// Writes what an op is by its definition, if that is one of other ops.
  void define(mlir::Operation *op);
  mlir::Operation *findSame(mlir::Operation *op);
  /// The root that an op's result is though the op reads other values; null if
  /// there is none.
  mlir::Value findEqual(mlir::Operation *op);
  mlir::Value findCut(nn::SliceOp op);
  mlir::Value addView(mlir::Value value, View view);
  uint64_t numberLeaves(mlir::Value root);
  void noteSum(mlir::Value root, mlir::Operation *add);
  mlir::Operation *getCombination(mlir::Value root) const;
  mlir::Operation *make(mlir::Operation *like, mlir::ValueRange operands);
  mlir::Value write(mlir::Operation *op);

  llvm::DenseMap<mlir::Value, mlir::Value> roots;
  llvm::DenseMap<size_t, llvm::SmallVector<mlir::Operation *, 1>> hashed;
  llvm::DenseMap<mlir::Value, Ops> readers;
  llvm::DenseMap<std::pair<mlir::Value, size_t>, Ops> readersOfKind;
  llvm::DenseMap<mlir::Attribute, Ops> readersOfElement;
  /// What a slice of a view takes of its root's elements: from the first of
  /// them on, by digits.
  struct Cut {
    int64_t first;
    std::vector<Digit> digits;
    mlir::Value value;
  };
  llvm::DenseMap<mlir::Value, std::vector<Cut>> cuts; ///< by that root
  /// By the root of the view that they read: one of those that are one.
  llvm::DenseMap<mlir::Value, llvm::SmallVector<mlir::Operation *, 1>>
      reductions;
  llvm::DenseMap<mlir::Value, mlir::Attribute> splats;
  llvm::DenseMap<mlir::OperationName, Ops> sources;
  mutable llvm::DenseMap<mlir::Value, View> views;
  llvm::DenseMap<mlir::Value, llvm::SmallVector<mlir::Value, 2>> viewsOf;
  /// What `distribute` has written: the program itself stays as it is.
  mlir::Block written;
  llvm::DenseMap<mlir::Value, mlir::Value> sums; ///< written, and what it is
  llvm::DenseMap<mlir::Value, mlir::Operation *> addedFrom; ///< the reverse
  llvm::DenseMap<mlir::Value, mlir::Operation *> subtractedFrom; ///< likewise
  /// The roots that are sums; of the first `numbered` of them, by a number of
  /// their leaves.
  std::vector<mlir::Value> added;
  size_t numbered = 0;
  std::unordered_map<uint64_t, llvm::SmallVector<mlir::Value, 1>> sumsByLeaves;
  llvm::DenseMap<mlir::Value, uint64_t> leafNumbers;
  mlir::Type wire;
  llvm::DenseMap<mlir::Value, bool> forGradients; ///< as far as asked
  llvm::DenseSet<mlir::Value> givenAsIs; ///< roots of results, but for marked
};

} // namespace accel::equivalence

#endif // ACCEL_LIB_EQUIVALENCE_LOGICAL_H
