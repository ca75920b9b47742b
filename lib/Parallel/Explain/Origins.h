// Where the axes of states, inputs and outputs come from: a table that is kept
// while a program is placed, for those who ask (`--explain`).

#ifndef ACCEL_LIB_PARALLEL_EXPLAIN_ORIGINS_H
#define ACCEL_LIB_PARALLEL_EXPLAIN_ORIGINS_H

#include "dialects/Dist/Dist.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace accel::parallel {

/// The table as a module carries it (`dist.origins`): an array of dictionaries
/// with the strings `entry`, `kind` (state, input or output), `name`, `axis`,
/// `by`, and the integer `dim`. A row is for one axis of one dimension; the
/// first that is added stays. States are the same in all entries: of theirs
/// `entry` is empty.
class Origins {
public:
  explicit Origins(mlir::ModuleOp module);

  struct Place {
    mlir::StringAttr entry, kind, name;
  };
  /// What an argument, or a result, of an entry stands for; no name where it
  /// stands for nothing that a user knows.
  static Place ofArgument(mlir::func::FuncOp entry, unsigned index);
  static Place ofResult(mlir::func::FuncOp entry, unsigned index);

  void add(const Place &place, int64_t dim, mlir::StringAttr axis,
           const llvm::Twine &by);
  /// Who has split that dimension; empty where nobody is known to have.
  llvm::StringRef find(const Place &place, int64_t dim,
                       mlir::StringAttr axis) const;
  /// The same, in whichever dimension.
  llvm::StringRef find(const Place &place, mlir::StringAttr axis) const;
  /// Who has split the moments of a state, which are called KIND/STATE.
  llvm::StringRef findMoment(mlir::StringAttr state,
                             mlir::StringAttr axis) const;
  /// An input that the axis splits; empty where it splits none.
  llvm::StringRef findInput(mlir::StringAttr axis) const;
  /// Writes the table back.
  void store();

private:
  mlir::DictionaryAttr findRow(const Place &place, std::optional<int64_t> dim,
                               mlir::StringAttr axis) const;

  mlir::ModuleOp module;
  llvm::SmallVector<mlir::Attribute> rows;
};

/// `nn.matmul 'h.0/MatMul_3'`: an op as a person knows it, by its ONNX node.
std::string describeOp(mlir::Operation *op);

} // namespace accel::parallel

#endif // ACCEL_LIB_PARALLEL_EXPLAIN_ORIGINS_H
