// A second implementation of ElementBuilder, beside the CPU's: it computes what
// it is asked to build at once, and combines elements as the lanes of a warp
// do, in halves that meet, not one after another. What ops make of it shows
// that their scalar code needs nothing of the CPU's loops.

#ifndef ACCEL_TEST_UNIT_TARGET_LANEBUILDER_H
#define ACCEL_TEST_UNIT_TARGET_LANEBUILDER_H

#include "dialects/Interfaces/ElementBuilder.h"
#include "dialects/Tensor/Tensor.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/DenseMap.h"
#include <map>

namespace accel::test {

class LaneBuilder : public ElementBuilder {
public:
  /// Its ops go to the end of `block`, of a module that has the dialects arith
  /// and LLVM.
  explicit LaneBuilder(mlir::Block *block)
      : b(mlir::ImplicitLocOpBuilder::atBlockEnd(
            mlir::UnknownLoc::get(block->getParentOp()->getContext()), block)) {
  }

  /// Declares what a tensor of the ops holds.
  void bind(mlir::Value tensor, Tensor contents) {
    memory[tensor] = std::move(contents);
  }
  /// What a value is, by folding all that it is made of.
  mlir::TypedAttr valueOf(mlir::Value value);
  double numberOf(mlir::Value value);
  int64_t integerOf(mlir::Value value);

  mlir::ImplicitLocOpBuilder &builder() override { return b; }
  mlir::Value element(mlir::Value tensor,
                      llvm::ArrayRef<mlir::Value> index) override;
  mlir::Type getComputeType(mlir::Type element) override;
  mlir::Value round(mlir::Value value, mlir::Type element) override;
  Values once(const void *key, llvm::ArrayRef<mlir::Value> index,
              llvm::function_ref<Values()> build) override;
  mlir::Value call(ScalarFunction function, mlir::ValueRange operands) override;

  mlir::Value constantIndex(int64_t value) override;
  mlir::Value add(mlir::Value lhs, mlir::Value rhs) override;
  mlir::Value mul(mlir::Value lhs, int64_t rhs) override;
  mlir::Value linearize(llvm::ArrayRef<mlir::Value> index,
                        llvm::ArrayRef<int64_t> shape) override;
  Values delinearize(mlir::Value position,
                     llvm::ArrayRef<int64_t> shape) override;
  /// Nothing is known before it is computed.
  std::optional<std::pair<int64_t, int64_t>> getRange(mlir::Value) override {
    return std::nullopt;
  }
  void wantCut(mlir::Value, int64_t) override {}

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

  mlir::Value scratch(mlir::Type type, int64_t elements) override;
  mlir::Value loadScratch(mlir::Value scratch, mlir::Value index,
                          mlir::Type type) override;
  void storeScratch(mlir::Value value, mlir::Value scratch,
                    mlir::Value index) override;
  void refuse(mlir::Value bad, mlir::Value position, mlir::Value value,
              int64_t least, int64_t end, bool isLabel) override;

  bool hasScratch = true;       ///< Whether there is any.
  std::vector<int64_t> refused; ///< Positions.
  int64_t reductions = 0; ///< How many reductions and choices were asked for.

private:
  mlir::Value constant(mlir::TypedAttr value) {
    return mlir::arith::ConstantOp::create(b, value);
  }
  mlir::Value combine(Combine kind, mlir::Value x, mlir::Value y);
  mlir::TypedAttr foldByHand(mlir::Operation *op);

  mlir::ImplicitLocOpBuilder b;
  llvm::DenseMap<mlir::Value, Tensor> memory;
  llvm::DenseMap<mlir::Value, mlir::TypedAttr> known;
  std::map<std::pair<const void *, std::vector<int64_t>>, Values> made;
  std::vector<std::vector<mlir::TypedAttr>> rows; ///< of scratch
};

} // namespace accel::test

#endif // ACCEL_TEST_UNIT_TARGET_LANEBUILDER_H
