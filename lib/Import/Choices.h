// Choices that only the run knows: NonZero of computed values gives as many
// elements as there happen to be. Here a choice has a place for each that there
// can be, and a mask says which are chosen; what is made of chosen elements one
// by one is computed at every place, and masked where places are combined. So
// all shapes are known, and nothing depends on who else is chosen.
#ifndef ACCEL_LIB_IMPORT_CHOICES_H
#define ACCEL_LIB_IMPORT_CHOICES_H

#include "mlir/IR/Builders.h"
#include "mlir/IR/Value.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include <optional>
#include <string>

namespace accel::import {

class NodeImporter;

/// Which values have a dimension that stands for what is chosen. A value has
/// one such dimension at most.
class Choices {
public:
  /// Dimension `dim` of a value has the places of choice `number`.
  struct Chosen {
    unsigned number;
    int64_t dim;
  };

  /// The choice by `mask`, i1 [places], of the elements of `chooser` that are
  /// not zero: its number, that of an earlier one that is computed alike.
  unsigned add(mlir::Value chooser, mlir::Value mask);
  bool isEmpty() const { return masks.empty(); }

  std::optional<Chosen> find(mlir::Value value) const;
  void mark(mlir::Value value, Chosen chosen);

  /// Which places are chosen: i1 of the shape of `value`, in which a choice
  /// stands, or of sizes of 1 in its other dimensions.
  mlir::Value findLine(NodeImporter &n, mlir::Value value);
  mlir::Value findMask(NodeImporter &n, mlir::Value value);

  /// Indices of dimensions of these sizes, the last dimension of `tuples` one
  /// for each: what lies where nothing is chosen points to the first place.
  /// Others are left as they are.
  mlir::Value makeSafe(NodeImporter &n, mlir::Value tuples,
                       llvm::ArrayRef<int64_t> sizes);

  /// How many are chosen, a scalar.
  mlir::Value count(NodeImporter &n, Chosen chosen, mlir::Type element);

  /// A value of the same shape with `neutral`, a scalar, where nothing is
  /// chosen; no choice stands in it.
  mlir::Value fill(NodeImporter &n, mlir::Value value, mlir::Value neutral);

  /// While it lives, choices are shapes like any other: of what is built
  /// meanwhile its builder says what lies where nothing is chosen.
  class Suspension {
  public:
    explicit Suspension(Choices &choices) : choices(choices) {
      ++choices.suspended;
    }
    ~Suspension() { --choices.suspended; }
    Suspension(const Suspension &) = delete;
    Suspension &operator=(const Suspension &) = delete;

  private:
    Choices &choices;
  };

  /// Of an op that has just been built, on which nothing depends yet: where
  /// choices stand in its results, once places are masked that it combines.
  /// Emits an error at the node and fails if it is none that treats places one
  /// by one or combines them (ShardingRule says which), takes their order into
  /// account, or meets another choice or something that is no choice.
  struct Followed {
    llvm::SmallVector<std::optional<Chosen>> results;
    bool isEntrance = false; ///< what is of no choice comes in
  };
  mlir::FailureOr<Followed> follow(NodeImporter &n, mlir::Operation *op);

  /// Of a value into which what is of no choice has come.
  void enter(mlir::Value value, Chosen chosen);

  /// A constant, of integers, that is computed of the numbers of places, as it
  /// stands for what the run computes of the numbers chosen; `other` is what it
  /// would be if there were more places, of each choice another number more.
  void markSize(mlir::Value value, mlir::Value other);
  bool isSize(mlir::Value value) const { return others.contains(value); }
  mlir::Value getOther(mlir::Value value) const {
    return isSize(value) ? others.lookup(value) : value;
  }
  int64_t getOtherSize(unsigned number) const;

  /// Of a size and what it would be otherwise, which choice's number it is, or
  /// is `factor` times; none of a number that is computed otherwise.
  std::optional<unsigned> findSize(int64_t size, int64_t other,
                                   int64_t *factor = nullptr) const;

  /// What is computed where nothing is chosen has no gradient, but 0 times
  /// infinity is none either. Where what may be infinite there meets what is
  /// not of the choice, zeros take its place; and a gradient that passes what
  /// may be infinite is masked before it reaches what is not of the choice.
  /// Returns whether there is anything to mask, which without `builder` is left
  /// as it is.
  bool guardGradients(mlir::OpBuilder *builder);

private:
  llvm::DenseSet<mlir::Value> findFinite() const;
  bool reachesPole(mlir::Value value,
                   const llvm::DenseSet<mlir::Value> &finite) const;
  mlir::Value buildMask(mlir::OpBuilder &builder, mlir::Value value) const;

  int suspended = 0;                              ///< how often
  llvm::SmallVector<mlir::Value> choosers, masks; ///< by number
  llvm::DenseMap<mlir::Value, Chosen> found;
  llvm::DenseMap<mlir::Value, mlir::Value> others; ///< of sizes
  /// Floats that are made of what is of a choice and what is not.
  llvm::SetVector<mlir::Value> entrances;
};

/// Whether all places of a dimension hold the same, as far as one sees.
bool isUniform(mlir::Value value, int64_t dim);

} // namespace accel::import

#endif // ACCEL_LIB_IMPORT_CHOICES_H
