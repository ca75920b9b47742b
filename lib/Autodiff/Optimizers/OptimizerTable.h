// The optimizers by name, and the hyperparameters of each: what `--optimizer`
// and `--set optimizer.KEY` can say.

#ifndef ACCEL_LIB_AUTODIFF_OPTIMIZERS_OPTIMIZERTABLE_H
#define ACCEL_LIB_AUTODIFF_OPTIMIZERS_OPTIMIZERTABLE_H

#include "lib/Autodiff/ReadValue.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <map>
#include <memory>
#include <string>

namespace accel::autodiff {

class Optimizer;

/// A number that an optimizer reads.
struct Hyperparameter {
  using Type = ValueType;   ///< betas are kept as beta1 and beta2
  llvm::StringLiteral name; ///< `optimizer.NAME`
  Type type;
  double first; ///< where nothing is said; of betas beta1
  double second = 0;
  llvm::ArrayRef<llvm::StringLiteral> words = {};
  int64_t least = 1, most = std::numeric_limits<int64_t>::max();
};

/// The numbers of one group of parameters: those of its optimizer and `lr`.
class Hyperparameters {
public:
  /// Requires that the optimizer has it.
  double get(llvm::StringRef name) const;
  bool isSet(llvm::StringRef name) const { return get(name) != 0; }
  void set(llvm::StringRef name, double value) { values[name.str()] = value; }
  bool operator<(const Hyperparameters &other) const {
    return values < other.values;
  }

private:
  std::map<std::string, double> values;
};

/// An optimizer as users name it.
struct OptimizerKind {
  llvm::StringLiteral name;
  llvm::ArrayRef<Hyperparameter> hyperparameters;
  std::unique_ptr<Optimizer> (*make)(const Hyperparameters &values);
  /// Whose hyperparameters and defaults these are.
  llvm::StringLiteral whose = "PyTorch's";
  /// The optimizer of what is no matrix of a hidden layer, where this one is of
  /// such alone.
  llvm::StringLiteral ofOthers = "";

  /// Null if it has none of that name.
  const Hyperparameter *find(llvm::StringRef name) const;
  /// What it takes where nothing is said.
  Hyperparameters getDefaults() const;
};

llvm::ArrayRef<OptimizerKind> optimizerKinds();
/// By its name in any letter case, with or without underscores; null if there
/// is none.
const OptimizerKind *findOptimizer(llvm::StringRef name);
/// "adamw, adam, …, or sgd".
std::string joinOptimizers();

/// Reads one value into `values`; fails with what was expected as `key`.
llvm::Error readHyperparameter(const Hyperparameter &parameter,
                               llvm::StringRef key, llvm::StringRef value,
                               Hyperparameters &values);

} // namespace accel::autodiff

#endif // ACCEL_LIB_AUTODIFF_OPTIMIZERS_OPTIMIZERTABLE_H
