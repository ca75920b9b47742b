// What an optimizer is: hyperparameters, states beside each parameter, and the
// ops that make new values of them. One file per optimizer, all of them in
// OptimizerTable.cpp.

#ifndef ACCEL_LIB_AUTODIFF_OPTIMIZERS_OPTIMIZER_H
#define ACCEL_LIB_AUTODIFF_OPTIMIZERS_OPTIMIZER_H

#include "lib/Autodiff/NNBuilder.h"
#include "lib/Autodiff/Optimizers/OptimizerTable.h"

namespace accel::autodiff {

/// A state that an optimizer keeps beside a parameter.
struct StateSpec {
  /// By the name of the original; the state is `name/PARAMETER`.
  llvm::StringRef name;
  mlir::RankedTensorType type;
  double first = 0; ///< of all elements
};

/// A hyperparameter: a number, or what a schedule makes of it in each step.
class Scalar {
public:
  Scalar(double number = 0) : number(number) {}
  explicit Scalar(mlir::Value value) : value(value) {}

  /// Whether it is 0 in all steps.
  bool isZero() const { return !value && number == 0; }
  /// Rank-0 f64.
  mlir::Value in(const NNBuilder &build) const {
    return value ? value : build.f64(number);
  }
  /// In the type of `like`, repeated to its shape.
  mlir::Value spread(const NNBuilder &build, mlir::Value like) const;
  /// 1 - it
  Scalar complement(const NNBuilder &build) const;

private:
  double number = 0;
  mlir::Value value;
};

/// What the update of all parameters of a group reads.
struct GroupScalars {
  const Hyperparameters &values;
  mlir::Value lr;   ///< of this step and group: rank-0 f64
  mlir::Value step; ///< its number, from 1: rank-0 f64
  /// Hyperparameters that the schedule drives: rank-0 f64.
  std::map<std::string, mlir::Value> driven;

  /// Of those that a schedule may drive: `momentum`, `beta1`, `weight_decay`.
  Scalar get(llvm::StringRef name) const;
};

/// New values of a parameter, of its states in their order, and of the average
/// of an optimizer that keeps one.
struct Updated {
  mlir::Value parameter;
  llvm::SmallVector<mlir::Value> states;
  mlir::Value average = {};
};

/// A parameter in its update.
struct ParameterValues {
  mlir::Value parameter;
  mlir::Value gradient; ///< clipped; of the parameter's type
  llvm::ArrayRef<mlir::Value> states;
  /// Its rows are parameters of the user's, one each, that are stacked here:
  /// norms and factors are of each row by itself.
  bool isStack = false;
  mlir::Value average = {}; ///< of an optimizer that keeps one
};

/// One group's optimizer, while its update is built.
class Optimizer {
public:
  virtual ~Optimizer() = default;

  /// The states of a parameter of this type.
  virtual llvm::SmallVector<StateSpec> getStates(mlir::RankedTensorType type,
                                                 bool isStack) const = 0;
  /// Whether what is to be evaluated and saved is an average of the parameter,
  /// of its type, which begins as the parameter.
  virtual bool keepsAverage() const { return false; }
  /// Builds what is the same for all parameters of the group; called once,
  /// before all updates.
  virtual void begin(const NNBuilder &build, const GroupScalars &group) = 0;
  /// Everything is computed in the parameter's type.
  virtual Updated update(const NNBuilder &build,
                         const ParameterValues &values) const = 0;
};

/// A scalar (rank-0 f64) in the type of `like`, repeated to its shape; what is
/// known now becomes a constant of that type.
mlir::Value spread(const NNBuilder &build, mlir::Value scalar,
                   mlir::Value like);
/// value · factor
mlir::Value scale(const NNBuilder &build, mlir::Value value,
                  const Scalar &factor);
/// old + (value - old) · weight, as torch.lerp has it for small weights.
mlir::Value lerp(const NNBuilder &build, mlir::Value old, mlir::Value value,
                 const Scalar &weight);
/// A part that is kept of an old value, and what is left of 1 for the new one.
struct Share {
  Scalar kept, rest;
  Share() = default;
  Share(const NNBuilder &build, const Scalar &kept)
      : kept(kept), rest(kept.complement(build)) {}
};
/// old · kept + value · rest
mlir::Value average(const NNBuilder &build, mlir::Value old, mlir::Value value,
                    const Share &share);
/// The averages that Adam and its kin keep, of the first two states.
struct Moments {
  mlir::Value mean, square;
};
Moments buildMoments(const NNBuilder &build, llvm::ArrayRef<mlir::Value> states,
                     mlir::Value gradient, const Share &beta1,
                     const Share &beta2);
/// 1 - beta^step: rank-0 f64
mlir::Value biasCorrection(const NNBuilder &build, const Scalar &beta,
                           mlir::Value step);

/// Weight decay as a part of the gradient (L2): gradient + weight_decay ·
/// parameter.
mlir::Value addDecay(const NNBuilder &build, const Scalar &weightDecay,
                     const ParameterValues &values);
/// Decoupled weight decay's factor of the parameter, 1 - lr · weight_decay:
/// rank-0 f64; null where nothing is decayed.
mlir::Value buildKeep(const NNBuilder &build, const GroupScalars &group);
/// parameter · keep
mlir::Value decay(const NNBuilder &build, mlir::Value keep,
                  mlir::Value parameter);

/// The sum of squares of the elements of `value`, or of each row of a stack:
/// of rank 0, or 1 and the stack's length.
mlir::Value buildSquares(const NNBuilder &build, mlir::Value value,
                         bool isStack);
/// above / below; 1 where either is 0 or `size`, which `below` is made of, is:
/// a parameter that begins with zeros would never move.
mlir::Value buildTrust(const NNBuilder &build, mlir::Value above,
                       mlir::Value below, mlir::Value size);
/// What `buildSquares` gives (or is made of it), repeated to the shape of
/// `like`.
mlir::Value repeat(const NNBuilder &build, mlir::Value value, mlir::Value like);

} // namespace accel::autodiff

#endif // ACCEL_LIB_AUTODIFF_OPTIMIZERS_OPTIMIZER_H
