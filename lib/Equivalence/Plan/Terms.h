// Value numbers: what is computed alike has one number, whoever computes it,
// and what tensors and bytes hold is said in terms of them.

#ifndef ACCEL_LIB_EQUIVALENCE_PLAN_TERMS_H
#define ACCEL_LIB_EQUIVALENCE_PLAN_TERMS_H

#include "IndexMap.h"
#include "mlir/IR/Operation.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/Support/Allocator.h"

#include <map>

namespace accel::equivalence {

/// The number of something computed, or given from outside.
using ValueId = unsigned;
/// The number of a row of elements.
using TermId = unsigned;

/// What a value is, where that matters to a rule.
enum class ValueKind {
  Undefined, ///< nobody knows
  Given,     ///< an input, a state, a constant, a coordinate
  Computed,
  Product,      ///< a matrix product before anything is rounded
  Cast,         ///< of `operand`
  Materialized, ///< the elements of `operand`, whose order no digits can say
  Packed        ///< `operand` in an order that only a library knows
};

struct Computation {
  ValueKind kind;
  int64_t count; ///< elements
  mlir::Type element;
  TermId operand = 0;
  /// Who computed it first; for messages.
  mlir::Operation *op = nullptr;
};

/// A row of elements: those of one value that a map picks; or `rows` times a
/// piece of each part, one after another; or on each rank along an axis another
/// term.
struct Term {
  ValueId value = 0;
  IndexMap map;
  int64_t rows = 1;
  struct Part {
    int64_t width;
    TermId term;
  };
  llvm::SmallVector<Part, 0> parts;
  mlir::StringAttr axis;                ///< of `choices`
  llvm::SmallVector<TermId, 0> choices; ///< by the rank's number along it
  int64_t count;
  mlir::Type element;
  bool defined;

  /// Whether it is those of one value.
  bool isOfValue() const { return parts.empty() && choices.empty(); }
};

/// A micro-batch: a number, or in a loop the turn plus a number. The turn is a
/// symbol, as one turn is followed for all; behind the loop it is the last one.
struct MicroBatch {
  mlir::StringAttr turn; ///< null: none
  int64_t number = 0;

  bool operator==(const MicroBatch &other) const {
    return turn == other.turn && number == other.number;
  }
  bool operator<(const MicroBatch &other) const {
    return std::pair(turn.getAsOpaquePointer(), number) <
           std::pair(other.turn.getAsOpaquePointer(), other.number);
  }
};

/// What makes one value different from another, word by word. Words that are
/// terms, and those that say a micro-batch, are known as such: of another
/// micro-batch the value is the same but for them (Renaming.h).
class ValueKey {
public:
  ValueKey &add(int64_t word) {
    words.push_back(word);
    return *this;
  }
  ValueKey &addTerm(TermId term) {
    operands.push_back(words.size());
    return add(int64_t(term));
  }
  /// Two of which it does not matter which is the first: the last words of a
  /// key that are terms.
  ValueKey &addPair(TermId lhs, TermId rhs) {
    isPair = true;
    return addTerm(std::min(lhs, rhs)).addTerm(std::max(lhs, rhs));
  }
  ValueKey &addMicroBatch(MicroBatch microBatch) {
    microBatches.push_back(words.size());
    return add(microBatch.turn.getAsOpaquePointer()).add(microBatch.number);
  }
  ValueKey &add(const void *pointer) {
    words.push_back(reinterpret_cast<uintptr_t>(pointer));
    return *this;
  }
  /// A list, with its length.
  ValueKey &add(llvm::ArrayRef<int64_t> list);
  ValueKey &add(const ValueKey &other) {
    words.append(other.words.begin(), other.words.end());
    return *this;
  }
  llvm::ArrayRef<uint64_t> get() const { return words; }

private:
  friend class Terms;
  friend class Renaming;
  llvm::SmallVector<uint64_t, 24> words;
  llvm::SmallVector<unsigned, 4> operands, microBatches; ///< places of words
  bool isPair = false; ///< the last two operands
};

/// All values and terms of one proof. Equal numbers mean equal elements on
/// every rank; different ones mean that nothing is known.
class Terms {
public:
  Terms();

  /// The value that the key says; `value` describes it if it is new.
  ValueId getValue(const ValueKey &key, const Computation &value);
  const Computation &at(ValueId id) const { return values[id]; }
  const Term &get(TermId id) const { return *terms[id]; }
  /// Values so far: a larger number is a value that had not been known.
  unsigned size() const { return values.size(); }

  TermId undefined(int64_t count, mlir::Type element);
  /// That of a tensor without elements.
  TermId empty(mlir::Type element);
  TermId whole(ValueId value);
  TermId strided(ValueId value, IndexMap map);
  /// `rows` times a piece of each part.
  TermId join(int64_t rows, llvm::ArrayRef<Term::Part> parts);
  /// What is another term on each rank along an axis.
  TermId choose(mlir::StringAttr axis, llvm::ArrayRef<TermId> choices);
  /// The elements of a term that a map picks.
  TermId select(TermId term, const IndexMap &at);
  /// The value that a term is the whole of; none if it is not one.
  std::optional<ValueId> getWhole(TermId term) const;
  /// What a value has been made of.
  ValueKey getKey(ValueId value) const;

private:
  std::optional<TermId> selectInDigits(TermId term, const IndexMap &at);
  std::optional<TermId> selectJoined(TermId term, const IndexMap &at);
  std::optional<TermId> selectByRows(TermId term, const IndexMap &at);
  std::optional<TermId> selectByRank(TermId term, const IndexMap &at);
  std::optional<int64_t> findStride(llvm::ArrayRef<TermId> choices) const;
  /// An axis of the mesh, and how many ranks are along it.
  struct Ranks {
    mlir::StringAttr axis;
    int64_t count;
  };
  using Axes = std::map<llvm::StringRef, Ranks>;
  TermId at(TermId id, mlir::StringAttr axis, int64_t number);
  void collectAxes(TermId id, mlir::StringAttr except, Axes &axes) const;
  std::optional<TermId>
  chooseParts(llvm::ArrayRef<TermId> choices,
              llvm::function_ref<TermId(llvm::ArrayRef<TermId>)> chooseOne);
  TermId tabulate(llvm::ArrayRef<Ranks> axes, llvm::ArrayRef<TermId> table);
  TermId nest(llvm::ArrayRef<Ranks> axes, llvm::ArrayRef<TermId> table);
  std::optional<TermId> merge(int64_t rows, Term::Part lhs, Term::Part rhs);
  TermId intern(Term term, const ValueKey &key);
  /// The id of a key; `next` if it is new.
  unsigned intern(llvm::DenseMap<llvm::ArrayRef<uint64_t>, unsigned> &known,
                  const ValueKey &key, unsigned next);

  /// A key as it is kept.
  struct Origin {
    llvm::ArrayRef<uint64_t> words;
    llvm::ArrayRef<unsigned> operands, microBatches;
    bool isPair;
  };

  llvm::BumpPtrAllocator memory;
  llvm::DenseMap<llvm::ArrayRef<uint64_t>, unsigned> knownValues, knownTerms;
  std::vector<Computation> values;
  std::vector<Origin> origins; ///< of values
  std::vector<std::unique_ptr<Term>> terms;
};

} // namespace accel::equivalence

#endif // ACCEL_LIB_EQUIVALENCE_PLAN_TERMS_H
