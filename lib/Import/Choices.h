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
#include <array>
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

  /// Elements of which those are chosen that `mask`, i1 [places], says.
  struct Choice {
    mlir::Value chooser; ///< it chooses what is not zero in it; null: derived
    mlir::Value mask;
    /// What the chooser's shape is, and its dimensions from major to minor in
    /// the order of the places.
    llvm::SmallVector<int64_t> shape, order;
    /// Of a flattened choice: whose each place has become how many.
    std::optional<unsigned> base;
    int64_t factor = 1;
    /// Of the first or last of a choice: whose, and which of them.
    std::optional<std::array<int64_t, 3>> range;
  };
  /// A choice by what is not zero; the number of an earlier one whose chooser
  /// is computed alike, or has the same elements in another shape.
  std::optional<unsigned> findBy(mlir::Value chooser) const;
  unsigned add(Choice choice);
  const Choice &get(unsigned number) const { return all[number]; }
  bool isEmpty() const { return all.empty(); }

  // Choices that are made of another one (DerivedChoices.cpp).

  /// The indices of the places of a choice in a tensor of `shape`, a column
  /// each: i64 [dims, places].
  mlir::Value listPlaces(NodeImporter &n, unsigned number,
                         llvm::ArrayRef<int64_t> shape);
  /// The same of rows, places of a choice in the first `numOuter` dimensions,
  /// that are flattened; they are not known now, as there may be very many.
  mlir::Value listRowPlaces(NodeImporter &n, unsigned number,
                            llvm::ArrayRef<int64_t> shape, size_t numOuter);
  /// Index tuples of the rows alone, where `tuples` are all elements of rows of
  /// a table of `shape` that are chosen; else null.
  mlir::Value findRows(NodeImporter &n, mlir::Value tuples,
                       llvm::ArrayRef<int64_t> shape);
  /// Of rows that are chosen their elements, `factor` for each.
  unsigned flatten(NodeImporter &n, unsigned number, int64_t factor);
  /// What is chosen, in the first dimension of a value, by samples (see
  /// GroupedChoices.cpp): `target` has the first dimensions of the chooser, as
  /// many as `open`, then what is not known, then those of an element; null if
  /// it is no such view.
  mlir::Value group(NodeImporter &n, mlir::Value value,
                    llvm::ArrayRef<int64_t> target, int64_t open);
  /// The dimension of such a view that is not known; none of another value.
  std::optional<int64_t> findGrouped(mlir::Value value) const {
    auto known = grouped.find(value);
    return known == grouped.end() ? std::nullopt
                                  : std::optional(known->second.second);
  }
  /// Of each sample the one with that index, from the end where it is negative:
  /// the run stops where a sample has none, or the samples that run at once
  /// have not equally many.
  mlir::Value takeOfEach(NodeImporter &n, mlir::Value value, int64_t index);
  /// Emits an error and fails if one of the values is such a view.
  mlir::LogicalResult checkGrouped(NodeImporter &n,
                                   mlir::ValueRange operands) const;
  /// Of what is chosen, in the order in which NonZero names it, those from
  /// `first` on, before `last`.
  unsigned takeRange(NodeImporter &n, unsigned number, int64_t first,
                     int64_t last);
  /// Of dimension `dim` of a value as many as a choice has: the first for what
  /// it names first, and so on. Emits an error and fails if it has none.
  mlir::Value takeFirst(NodeImporter &n, mlir::Value value, int64_t dim,
                        unsigned number);
  /// A value that meets the elements of a choice in its dimension `dim`, which
  /// it has not if that is negative: as it is where it is of a choice itself or
  /// the same for all of them; else it has one element for each that is chosen,
  /// which are given in the order in which NonZero names them (`x[mask] =
  /// rows`), and the run stops where their numbers differ. Emits an error and
  /// fails where they must.
  mlir::Value meet(NodeImporter &n, mlir::Value value, int64_t dim,
                   unsigned number);
  /// A value whose dimension has the places of a choice with these in the order
  /// in which NonZero names them: row-major in the chooser.
  mlir::Value sortPlaces(NodeImporter &n, mlir::Value value, Chosen chosen);
  /// How many are chosen before each place, in that order: i64 [places], of no
  /// choice.
  mlir::Value countBefore(NodeImporter &n, unsigned number);

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

  // Sizes that only the run knows (ChosenSizes.cpp).

  /// What a size is: a number, and how often the number that each choice
  /// chooses is in it, by choice; one that is not flattened.
  using SizeForm = llvm::SmallVector<int64_t, 4>;
  static bool isNumber(llvm::ArrayRef<int64_t> form) {
    return llvm::all_of(form.drop_front(), [](int64_t part) { return !part; });
  }
  /// How many a choice chooses: of which choice, how often.
  std::pair<unsigned, int64_t> countOf(unsigned number) const;
  /// A constant, of integers, that holds what sizes are if all places are
  /// chosen; `parts` hold their forms, each part of all elements. Null: zeros.
  void markSize(mlir::Value value, llvm::SmallVector<mlir::Value> parts);
  bool isSize(mlir::Value value) const { return sizes.contains(value); }
  /// Its parts; of what is no size it is the number.
  llvm::SmallVector<mlir::Value> getParts(mlir::Value value) const {
    auto known = sizes.find(value);
    return known == sizes.end() ? llvm::SmallVector<mlir::Value>{value}
                                : known->second;
  }
  /// Of each element of a constant.
  llvm::SmallVector<SizeForm> getForms(mlir::Value value) const;
  /// Of which choice a size is `factor` times the number; none of a number that
  /// is computed otherwise.
  static std::optional<unsigned> findSize(llvm::ArrayRef<int64_t> form,
                                          int64_t &factor);

  /// What is computed where nothing is chosen has no gradient, but 0 times
  /// infinity is none either. Where what may be infinite there meets what is
  /// not of the choice, zeros take its place; and a gradient that passes what
  /// may be infinite is masked before it reaches what is not of the choice.
  /// Returns whether there is anything to mask, which without `builder` is left
  /// as it is.
  bool guardGradients(mlir::OpBuilder *builder);

private:
  /// What lies in a dimension, given to what is chosen in turn: the run stops
  /// where there are fewer or, `exactly`, more.
  mlir::Value giveInTurn(NodeImporter &n, mlir::Value value, int64_t dim,
                         unsigned number, bool exactly);
  llvm::DenseSet<mlir::Value> findFinite() const;
  bool reachesPole(mlir::Value value,
                   const llvm::DenseSet<mlir::Value> &finite) const;
  mlir::Value buildMask(mlir::OpBuilder &builder, mlir::Value value) const;

  int suspended = 0;             ///< how often
  llvm::SmallVector<Choice> all; ///< by number
  llvm::DenseMap<mlir::Value, Chosen> found;
  /// By markSize.
  llvm::DenseMap<mlir::Value, llvm::SmallVector<mlir::Value>> sizes;
  llvm::DenseSet<mlir::Value> safeIndices; ///< by makeSafe
  /// What listRowPlaces has made, of which shape and how many dimensions.
  llvm::DenseMap<mlir::Value, std::pair<llvm::SmallVector<int64_t>, size_t>>
      rowPlaces;
  /// By `group`: the chooser's mask, i1 [samples, places], and the dimension.
  llvm::DenseMap<mlir::Value, std::pair<mlir::Value, int64_t>> grouped;
  /// Floats that are made of what is of a choice and what is not.
  llvm::SetVector<mlir::Value> entrances;
};

/// Whether all places of a dimension hold the same, as far as one sees.
bool isUniform(mlir::Value value, int64_t dim);

} // namespace accel::import

#endif // ACCEL_LIB_IMPORT_CHOICES_H
