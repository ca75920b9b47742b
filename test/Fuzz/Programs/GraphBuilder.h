// Builds a forward program of nn ops, value by value, in float64.

#ifndef ACCEL_TEST_FUZZ_PROGRAMS_GRAPHBUILDER_H
#define ACCEL_TEST_FUZZ_PROGRAMS_GRAPHBUILDER_H

#include "Random.h"
#include "dialects/NN/NN.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"

#include <string>
#include <vector>

namespace accel::fuzz {

using mlir::Value;
using Shape = llvm::SmallVector<int64_t>;

class GraphBuilder {
public:
  GraphBuilder(mlir::MLIRContext *context, Random &random);

  /// The program, in phase `nn`, with `loss` as output "loss".
  mlir::OwningOpRef<mlir::ModuleOp> finish(Value loss);

  static llvm::ArrayRef<int64_t> shapeOf(Value value) {
    return mlir::cast<mlir::RankedTensorType>(value.getType()).getShape();
  }
  static int64_t rankOf(Value value) { return shapeOf(value).size(); }
  static mlir::Type elementOf(Value value) {
    return mlir::getElementTypeOrSelf(value.getType());
  }
  mlir::Type f64() { return b.getF64Type(); }
  mlir::Type i64() { return b.getI64Type(); }

  /// The batch is the first dimension, or as `batchDim` says ("1", "none").
  Value input(llvm::StringRef stem, llvm::ArrayRef<int64_t> shape,
              mlir::Type element, llvm::StringRef batchDim = "");
  /// A trained state: random numbers around `middle`.
  Value parameter(llvm::StringRef stem, llvm::ArrayRef<int64_t> shape,
                  double spread = 0.5, double middle = 0);
  /// A state that is not trained.
  Value frozen(llvm::StringRef stem, llvm::ArrayRef<int64_t> shape,
               double spread = 0.5, double middle = 0);
  /// A state that the step changes by what the model says.
  Value buffer(llvm::StringRef stem, llvm::ArrayRef<int64_t> shape,
               double spread = 0.5, double middle = 0);
  Value splat(double number, llvm::ArrayRef<int64_t> shape = {});
  Value integers(llvm::ArrayRef<int64_t> numbers,
                 llvm::ArrayRef<int64_t> shape);
  Value floats(llvm::ArrayRef<double> numbers, llvm::ArrayRef<int64_t> shape);
  Value integer(int64_t number, llvm::ArrayRef<int64_t> shape);
  Value iota(llvm::ArrayRef<int64_t> shape, int64_t dim);

  /// Any op, its type inferred or given first.
  template <typename Op, typename... Args> Value make(Args &&...args) {
    return Op::create(b, loc(Op::getOperationName()),
                      std::forward<Args>(args)...)
        ->getResult(0);
  }

  // Of two operands the second is broadcast to the first, or the first to the
  // second, as NumPy does.
  Value add(Value x, Value y) { return binary<nn::AddOp>(x, y); }
  Value sub(Value x, Value y) { return binary<nn::SubOp>(x, y); }
  Value mul(Value x, Value y) { return binary<nn::MulOp>(x, y); }
  Value div(Value x, Value y) { return binary<nn::DivOp>(x, y); }
  Value add(Value x, double y) { return add(x, splat(y, shapeOf(x))); }
  Value mul(Value x, double y) { return mul(x, splat(y, shapeOf(x))); }
  Value select(Value condition, Value x, Value y);
  Value compare(nn::ComparePredicate predicate, Value x, Value y);
  template <typename Op> Value binary(Value x, Value y) {
    Shape shape = join(shapeOf(x), shapeOf(y));
    return make<Op>(broadcast(x, shape), broadcast(y, shape));
  }

  Value reshape(Value value, llvm::ArrayRef<int64_t> shape);
  Value broadcast(Value value, llvm::ArrayRef<int64_t> shape);
  Value transpose(Value value, llvm::ArrayRef<int64_t> permutation);
  Value slice(Value value, int64_t dim, int64_t start, int64_t size,
              int64_t step = 1);
  Value concat(llvm::ArrayRef<Value> values, int64_t dim);
  Value pad(Value value, int64_t dim, int64_t low, int64_t high,
            double filler = 0);
  /// Puts a dimension of size 1 in.
  Value unsqueeze(Value value, int64_t dim);
  Value reduce(nn::ReductionKind kind, Value value,
               llvm::ArrayRef<int64_t> dims, bool keep = false);
  Value sum(Value value, llvm::ArrayRef<int64_t> dims, bool keep = false) {
    return reduce(nn::ReductionKind::sum, value, dims, keep);
  }
  Value sumAll(Value value);
  /// A sum times a constant.
  Value mean(Value value, llvm::ArrayRef<int64_t> dims, bool keep = false);
  Value meanAll(Value value);
  Value matmul(Value x, Value y, bool transposeX = false,
               bool transposeY = false);
  Value softmax(Value value, int64_t dim, bool log = false);
  Value layerNorm(Value value, Value scale, Value bias, int64_t dim);
  Value gather(Value table, Value indices, int64_t dim, int64_t padding = -1);
  Value cast(Value value, mlir::Type element);

  static Shape join(llvm::ArrayRef<int64_t> x, llvm::ArrayRef<int64_t> y);

  Random &random;
  std::vector<std::string> batchDims; ///< as `--batch-dim` takes them

private:
  Value state(llvm::StringRef stem, llvm::ArrayRef<int64_t> shape,
              double spread, double middle, bool isFrozen,
              nn::StateRole role = nn::StateRole::parameter);
  mlir::Location loc(llvm::StringRef stem);
  Value addArgument(unsigned place, mlir::Type type, llvm::StringRef attribute,
                    mlir::Attribute value, mlir::Location loc);

  mlir::OpBuilder b;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  mlir::func::FuncOp entry;
  unsigned numInputs = 0, numStates = 0, numOps = 0;
};

} // namespace accel::fuzz

#endif // ACCEL_TEST_FUZZ_PROGRAMS_GRAPHBUILDER_H
