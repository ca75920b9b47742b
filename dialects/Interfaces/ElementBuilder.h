// What the scalar code of ops asks of the target that it is generated for: the
// elements that it reads, and whatever a target may do in its own way. A
// reduction names what it combines, so that a core loops over it while the
// lanes of a warp share it; what is left is ops of `arith`, which all targets
// have.

#ifndef ACCEL_DIALECTS_INTERFACES_ELEMENTBUILDER_H
#define ACCEL_DIALECTS_INTERFACES_ELEMENTBUILDER_H

#include "mlir/IR/ImplicitLocOpBuilder.h"
#include <optional>

namespace accel {

/// How elements are combined. Integers are signed or not as the kind says;
/// sums and products of floats may be made in any order, and the greatest and
/// least of floats are NaN if one of them is.
enum class Combine {
  Sum,
  Product,
  Max,
  Min,
  UnsignedMax,
  UnsignedMin,
};

/// Functions of floats that targets have in their own accuracy
/// (docs/Numerics.md): NaN and infinities as C has them.
enum class ScalarFunction {
  Exp,
  ExpOfNonPositive, ///< The operand is at most 0, or NaN.
  Log,
  Log1p,
  Tanh,
  Erf,
  Sigmoid,
  Sqrt,
  Sin,
  Cos,
  Atan,
  Pow,  ///< of two operands
  Fmod, ///< of two operands
};

/// Builds the code of one kernel. Values are of the context that the code is
/// in, tensors of that of the ops that ask. Indices are i64, never negative.
class ElementBuilder {
public:
  using Values = llvm::SmallVector<mlir::Value>;

  virtual ~ElementBuilder() = default;

  /// For scalar operations where code is being built. Whatever is called below
  /// may move it: ask again.
  virtual mlir::ImplicitLocOpBuilder &builder() = 0;

  //===--- Elements -------------------------------------------------------===//

  /// The element of `tensor` at `index`. Requires every op that `tensor`
  /// depends on to implement ElementSource, or to be in memory.
  virtual mlir::Value element(mlir::Value tensor,
                              llvm::ArrayRef<mlir::Value> index) = 0;
  /// The type that elements of a type are computed in: f32 for floats narrower
  /// than it, signless integers, i1 for booleans.
  virtual mlir::Type getComputeType(mlir::Type element) = 0;
  /// The value as it would be read back after being stored as `element`.
  virtual mlir::Value round(mlir::Value value, mlir::Type element) = 0;
  /// Builds `build` once for each different `index`, where what depends on it
  /// alone belongs. `key` tells the computations of one op from those of
  /// others.
  virtual Values once(const void *key, llvm::ArrayRef<mlir::Value> index,
                      llvm::function_ref<Values()> build) = 0;
  virtual mlir::Value call(ScalarFunction function,
                           mlir::ValueRange operands) = 0;

  //===--- Indices --------------------------------------------------------===//

  virtual mlir::Value constantIndex(int64_t value) = 0;
  virtual mlir::Value add(mlir::Value lhs, mlir::Value rhs) = 0;
  virtual mlir::Value mul(mlir::Value lhs, int64_t rhs) = 0;
  /// Row-major position of an index, and back.
  virtual mlir::Value linearize(llvm::ArrayRef<mlir::Value> index,
                                llvm::ArrayRef<int64_t> shape) = 0;
  virtual Values delinearize(mlir::Value position,
                             llvm::ArrayRef<int64_t> shape) = 0;
  /// The first value that an index may take and the end of them, if known.
  virtual std::optional<std::pair<int64_t, int64_t>>
  getRange(mlir::Value index) = 0;
  /// Says that an element must ask whether `index` is below `at`, for every
  /// index of the loop that it is made of: a target may divide the loop there.
  virtual void wantCut(mlir::Value index, int64_t at) = 0;

  //===--- Elements combined ----------------------------------------------===//

  /// `term` of all indices of `shape`, combined; what changes nothing where
  /// there are none. Each index is asked for once, at which `term` may store in
  /// scratch. `areNeighbours`: what is read along the last dimension lies next
  /// to each other.
  virtual mlir::Value
  reduce(Combine kind, mlir::Type type, llvm::ArrayRef<int64_t> shape,
         llvm::function_ref<mlir::Value(llvm::ArrayRef<mlir::Value>)> term,
         bool areNeighbours) = 0;

  /// A sum of ever more terms along a dimension.
  struct Scan {
    const void *key; ///< As of once(): the row is that of `outer`.
    llvm::ArrayRef<mlir::Value> outer;
    mlir::Type type;
    int64_t size;
    bool isReverse;   ///< From the last position on.
    bool isExclusive; ///< Without the term of the position itself.
  };
  /// The sum at the position `at`, of terms added in their order.
  virtual mlir::Value
  scan(const Scan &scan, mlir::Value at,
       llvm::function_ref<mlir::Value(mlir::Value position)> term) = 0;

  /// What `choose` chooses among.
  struct Candidate {
    mlir::Value order;  ///< A signless integer, compared with sign.
    mlir::Value counts; ///< i1
  };
  /// The place of the greatest of `size` candidates that count, of equal ones
  /// the first, and its order; place -1 if there is none. Orders are of `type`.
  virtual std::pair<mlir::Value, mlir::Value>
  choose(int64_t size, mlir::Type type,
         llvm::function_ref<Candidate(mlir::Value place)> candidate) = 0;

  /// Of the numbers below `count`, which is at most `most`, what `getPlace`
  /// makes of each, if it `isWanted`, in their order: scratch of i64s, and how
  /// many there are; two null values where scratch has no room for `most`.
  virtual std::pair<mlir::Value, mlir::Value>
  filter(mlir::Value count, int64_t most,
         llvm::function_ref<mlir::Value(mlir::Value number)> getPlace,
         llvm::function_ref<mlir::Value(mlir::Value place)> isWanted) = 0;

  /// A loop from `begin` to `end` that carries values; returns the last ones.
  /// Turns follow each other: what may be shared is a reduction.
  virtual Values
  loop(mlir::Value begin, mlir::Value end, mlir::ValueRange initial,
       llvm::function_ref<Values(mlir::Value, mlir::ValueRange)> body) = 0;

  //===--- Scratch and refusals -------------------------------------------===//

  /// Room for `elements` values of compute type `type`, of who makes the row;
  /// null if the kernel has used up what there is.
  virtual mlir::Value scratch(mlir::Type type, int64_t elements) = 0;
  virtual mlir::Value loadScratch(mlir::Value scratch, mlir::Value index,
                                  mlir::Type type) = 0;
  virtual void storeScratch(mlir::Value value, mlir::Value scratch,
                            mlir::Value index) = 0;

  /// Records `position` as the place of a datum that the kernel refuses, where
  /// `bad` is true, since `value` is outside [least, end). The kernel goes on;
  /// the least position is what it says in the end.
  virtual void refuse(mlir::Value bad, mlir::Value position, mlir::Value value,
                      int64_t least, int64_t end, bool isLabel) = 0;
};

} // namespace accel

#endif // ACCEL_DIALECTS_INTERFACES_ELEMENTBUILDER_H
