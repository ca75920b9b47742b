// Who makes each optimizer. Private to the folder.

#ifndef ACCEL_LIB_AUTODIFF_OPTIMIZERS_MAKERS_H
#define ACCEL_LIB_AUTODIFF_OPTIMIZERS_MAKERS_H

#include "lib/Autodiff/Optimizers/OptimizerTable.h"

namespace accel::autodiff {

std::unique_ptr<Optimizer> makeSgd(const Hyperparameters &values);
std::unique_ptr<Optimizer> makeAdam(const Hyperparameters &values);
std::unique_ptr<Optimizer> makeAdamW(const Hyperparameters &values);
std::unique_ptr<Optimizer> makeAdam8bit(const Hyperparameters &values);
std::unique_ptr<Optimizer> makeAdamFp8(const Hyperparameters &values);
std::unique_ptr<Optimizer> makeAdamWFp8(const Hyperparameters &values);
std::unique_ptr<Optimizer> makeAdamax(const Hyperparameters &values);
std::unique_ptr<Optimizer> makeNAdam(const Hyperparameters &values);
std::unique_ptr<Optimizer> makeRAdam(const Hyperparameters &values);
std::unique_ptr<Optimizer> makeAdagrad(const Hyperparameters &values);
std::unique_ptr<Optimizer> makeAdadelta(const Hyperparameters &values);
std::unique_ptr<Optimizer> makeRmsprop(const Hyperparameters &values);
std::unique_ptr<Optimizer> makeLion(const Hyperparameters &values);
std::unique_ptr<Optimizer> makeLamb(const Hyperparameters &values);
std::unique_ptr<Optimizer> makeLars(const Hyperparameters &values);
std::unique_ptr<Optimizer> makeAdafactor(const Hyperparameters &values);
std::unique_ptr<Optimizer> makeMuon(const Hyperparameters &values);
std::unique_ptr<Optimizer> makeScheduleFreeAdamW(const Hyperparameters &values);

} // namespace accel::autodiff

#endif // ACCEL_LIB_AUTODIFF_OPTIMIZERS_MAKERS_H
