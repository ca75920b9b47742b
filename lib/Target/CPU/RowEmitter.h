// The builder of a core's kernels: writes one as nested scalar loops, on
// demand. A result element asks for operand elements, and so on down to loads;
// every value is emitted in the outermost loop that defines its indices, and
// only once there. So a statistic of a row is computed once per row, and an
// index that is read for a row is read once, without any pass that moves code.
// An element may ask that the loop it is in be divided (DividedLoop.h).

#ifndef ACCEL_LIB_TARGET_CPU_ROWEMITTER_H
#define ACCEL_LIB_TARGET_CPU_ROWEMITTER_H

#include "DividedLoop.h"
#include "dialects/Interfaces/ElementBuilder.h"
#include <map>
#include <memory>

namespace accel {

/// Works in a context of its own: the ops that ask for elements are in another.
class RowEmitter : public ElementBuilder {
public:
  /// Bytes of stack that one kernel may take for rows.
  static constexpr int64_t kStackLimit = 128 * 1024;

  /// Where a tensor that is an argument of the kernel lies.
  struct Memory {
    mlir::Value pointer;
    llvm::SmallVector<int64_t> strides; ///< in elements
  };
  /// Emits before `end`, the terminator of a function's only block. Refused
  /// data are described at the address `refusal` (an accel::rt::Refusal); null
  /// if nothing will be refused.
  RowEmitter(mlir::Operation *end, mlir::Value refusal);
  ~RowEmitter() override;

  mlir::ImplicitLocOpBuilder &builder() override { return b; }

  //===--- Elements -------------------------------------------------------===//

  /// Declares that `tensor` (a value of the other context) is read from memory.
  void bind(mlir::Value tensor, Memory memory);

  /// Declares where a tensor lies that the kernel has computed itself, in the
  /// compute type; from here on its elements are read there. `offset` is the
  /// position that `pointer` has.
  void bindComputed(mlir::Value tensor, mlir::Value pointer, mlir::Value offset,
                    llvm::ArrayRef<int64_t> strides);

  /// Requires every argument to be bound.
  mlir::Value element(mlir::Value tensor,
                      llvm::ArrayRef<mlir::Value> index) override;
  mlir::Type getComputeType(mlir::Type element) override;
  /// The type that they are stored in: i8 for booleans.
  mlir::Type getStorageType(mlir::Type element);

  /// Loads and stores an element of the given (other context's) type. The value
  /// has the compute type.
  mlir::Value load(mlir::Value pointer, mlir::Value index, mlir::Type element);
  void store(mlir::Value value, mlir::Value pointer, mlir::Value index,
             mlir::Type element);
  mlir::Value round(mlir::Value value, mlir::Type element) override;
  /// In the loop that defines `index`.
  Values once(const void *key, llvm::ArrayRef<mlir::Value> index,
              llvm::function_ref<Values()> emit) override;
  mlir::Value call(ScalarFunction function, mlir::ValueRange operands) override;

  //===--- Indices --------------------------------------------------------===//

  mlir::Value constantIndex(int64_t value) override;
  mlir::Value add(mlir::Value lhs, mlir::Value rhs) override;
  mlir::Value mul(mlir::Value lhs, int64_t rhs) override;
  mlir::Value div(mlir::Value lhs, int64_t rhs);
  mlir::Value rem(mlir::Value lhs, int64_t rhs);
  mlir::Value linearize(llvm::ArrayRef<mlir::Value> index,
                        llvm::ArrayRef<int64_t> shape) override;
  Values delinearize(mlir::Value position,
                     llvm::ArrayRef<int64_t> shape) override;
  /// Σ index · stride.
  mlir::Value offset(llvm::ArrayRef<mlir::Value> index,
                     llvm::ArrayRef<int64_t> shape,
                     llvm::ArrayRef<int64_t> strides);
  std::optional<std::pair<int64_t, int64_t>>
  getRange(mlir::Value index) override;
  void wantCut(mlir::Value index, int64_t at) override;
  /// The divisions that the elements emitted so far would gain from.
  const std::vector<LoopDivision> &getWanted() const { return wanted; }

  //===--- Loops and what they combine (Combine.cpp) ----------------------===//

  mlir::Value
  reduce(Combine kind, mlir::Type type, llvm::ArrayRef<int64_t> shape,
         llvm::function_ref<mlir::Value(llvm::ArrayRef<mlir::Value>)> term,
         bool areNeighbours) override;
  mlir::Value scan(const Scan &scan, mlir::Value at,
                   llvm::function_ref<mlir::Value(mlir::Value)> term) override;
  std::pair<mlir::Value, mlir::Value>
  choose(int64_t size, mlir::Type type,
         llvm::function_ref<Candidate(mlir::Value)> candidate) override;
  std::pair<mlir::Value, mlir::Value>
  filter(mlir::Value count, int64_t most,
         llvm::function_ref<mlir::Value(mlir::Value)> getPlace,
         llvm::function_ref<mlir::Value(mlir::Value)> isWanted) override;

  Values
  loop(mlir::Value begin, mlir::Value end, mlir::ValueRange initial,
       llvm::function_ref<Values(mlir::Value, mlir::ValueRange)> body) override;
  /// Nested loops over all indices of `shape`.
  Values loops(
      llvm::ArrayRef<int64_t> shape, mlir::ValueRange initial,
      llvm::function_ref<Values(llvm::ArrayRef<mlir::Value>, mlir::ValueRange)>
          body);
  /// The same without values to carry, over loops that may be divided: each
  /// body sees the index that it has in the whole.
  Values loops(llvm::MutableArrayRef<DividedLoop> dims,
               llvm::function_ref<void(llvm::ArrayRef<mlir::Value>)> body);

  //===--- Scratch and refusals -------------------------------------------===//

  /// A row of the thread's stack, or, where that has no room, of what
  /// giveScratch() has given.
  mlir::Value scratch(mlir::Type type, int64_t elements) override;
  mlir::Value loadScratch(mlir::Value pointer, mlir::Value index,
                          mlir::Type type) override;
  void storeScratch(mlir::Value value, mlir::Value pointer,
                    mlir::Value index) override;

  /// `bytes` at the address `pointer`, which is aligned for any type, are the
  /// thread's own while the function runs.
  void giveScratch(mlir::Value pointer, int64_t bytes);
  /// How many of these bytes rows were kept in so far.
  int64_t getUsedScratch() const { return givenBytes; }

  void refuse(mlir::Value bad, mlir::Value position, mlir::Value value,
              int64_t least, int64_t end, bool isLabel) override;
  /// What the kernel returns: 0, or 1 + the least refused position.
  mlir::Value refusal();

private:
  struct Scope;
  using Key = std::pair<const void *, std::vector<const void *>>;

  Scope *scopeOf(mlir::Value value);
  Scope *scopeOf(llvm::ArrayRef<mlir::Value> values);
  void enter(Scope *scope);
  mlir::Value arithmetic(char kind, mlir::Value lhs, mlir::Value rhs);
  mlir::Value address(mlir::Value pointer, mlir::Value index, mlir::Type type);
  static std::optional<int64_t> getConstant(mlir::Value value);

  Values loop(DividedLoop &divided, mlir::ValueRange initial,
              llvm::function_ref<Values(mlir::Value, mlir::ValueRange)> body);
  /// outer · size + inner, with inner < size.
  mlir::Value join(mlir::Value outer, mlir::Value inner, int64_t size);
  void noteSum(mlir::Value sum, mlir::Value from, int64_t by);
  /// Quotient and remainder, where they are known without a division.
  std::optional<std::pair<mlir::Value, mlir::Value>> divide(mlir::Value index,
                                                            int64_t n);
  /// Says that a quotient or remainder is used as it is; false if no loop would
  /// give it.
  bool wantSplit(mlir::Value index);

  mlir::ImplicitLocOpBuilder b;
  std::vector<std::unique_ptr<Scope>> scopes; ///< the function's first
  Scope *current;
  llvm::DenseMap<mlir::Block *, Scope *> scopeOfBlock;
  llvm::DenseMap<mlir::Value, Memory> memory;
  struct Computed {
    mlir::Value pointer, offset;
    llvm::SmallVector<int64_t> strides;
  };
  llvm::DenseMap<mlir::Value, Computed> computed;
  llvm::DenseMap<int64_t, mlir::Value> constants;
  /// How an index was made of another by a division: quotients, remainders.
  llvm::DenseMap<mlir::Value, std::pair<mlir::Value, int64_t>> quotients,
      remainders;
  /// Of an index: its values, and the loop whose index it is, moved by so much.
  struct Fact {
    int64_t begin, end;
    DividedLoop *loop;
    int64_t moved;
  };
  llvm::DenseMap<mlir::Value, Fact> facts;
  struct Join {
    mlir::Value outer, inner;
    int64_t size;
  };
  llvm::DenseMap<mlir::Value, Join> joins;
  std::vector<LoopDivision> wanted;
  mlir::Value refused;     ///< where the refused position is kept
  mlir::Value description; ///< and where what it holds is
  int64_t stackBytes = 0;
  mlir::Value given; ///< beside the stack, `mostGiven` bytes
  int64_t givenBytes = 0, mostGiven = 0;
};

} // namespace accel

#endif // ACCEL_LIB_TARGET_CPU_ROWEMITTER_H
