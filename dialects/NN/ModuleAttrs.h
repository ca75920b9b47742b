// Attributes of the module that say what no op of it does; lib/Emit puts them
// into the executable.

#ifndef ACCEL_DIALECTS_NN_MODULEATTRS_H
#define ACCEL_DIALECTS_NN_MODULEATTRS_H

#include "llvm/ADT/StringRef.h"

namespace accel::nn {

/// Parameters of the user's program that the exporter folded away, a list of
/// `{name = "wte.weight", shape = array<i64: 96, 32>}` (no shape where it is
/// unknown). Set by import; absent if there are none.
inline constexpr llvm::StringLiteral kFoldedParametersAttr =
    "accel.folded_parameters";
/// The seed of everything random, an integer. Set by `train`; absent: 0.
inline constexpr llvm::StringLiteral kSeedAttr = "accel.seed";
/// The name of the input of labels that `--loss cross_entropy:` added, a
/// string: it is not shifted against the logits. Set by `train`; absent if
/// there is none.
inline constexpr llvm::StringLiteral kUnshiftedLabelsAttr =
    "accel.unshifted_labels";
/// A sentence that says what the module lacks for training, as it was imported
/// for inference.
inline constexpr llvm::StringLiteral kUntrainableAttr = "accel.untrainable";

} // namespace accel::nn

#endif // ACCEL_DIALECTS_NN_MODULEATTRS_H
