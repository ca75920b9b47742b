// What of a model's activations the backward computes again, as `--recompute`
// says it.

#ifndef ACCEL_LIB_NAMES_RECOMPUTEPOLICY_H
#define ACCEL_LIB_NAMES_RECOMPUTEPOLICY_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <string>
#include <vector>

namespace accel {

/// The policies of Megatron-LM (`--recompute-granularity`, `-method`,
/// `-num-layers`, `-modules`) and of FSDP's and DeepSpeed's activation
/// checkpointing.
struct RecomputePolicy {
  enum class Kind {
    Auto,      ///< what fits a memory budget; without one as `Model`
    Model,     ///< what the model's code ran in torch.utils.checkpoint
    None,      ///< every activation is kept
    Selective, ///< the parts of layers that `names` has, found by what they do
    Uniform,   ///< all layers, in groups of `layers`; each keeps what it reads
    Block,     ///< the first `layers` layers of each chunk of a pipeline
    Patterns,  ///< the modules whose paths match a glob pattern of `names`
  };

  Kind kind = Kind::Auto;
  int64_t layers = 1;
  std::vector<std::string> names = {};

  /// `auto`, `model`, `none`, `selective` (of `core_attn`),
  /// `selective:PART,PART`, `full` (that is `full:uniform:1`),
  /// `full:uniform:N`, `full:block:N` or `PATTERN,PATTERN`. Errors: a part or a
  /// method that there is not, a number below 1, a pattern that is none.
  static llvm::Expected<RecomputePolicy> parse(llvm::StringRef text);

  /// Whether a module's path says that it is numbered in a list.
  static bool isLayer(llvm::StringRef module);
  /// Whether it is a call of torch.utils.checkpoint, as the importer names it.
  static bool isCheckpoint(llvm::StringRef module);

  /// Of the modules that an op lies in, the outermost first, the one with which
  /// it is computed again; none where what the op does, or where the model is
  /// cut, has to be known.
  llvm::StringRef findModule(llvm::ArrayRef<std::string> modules) const;

  /// The parts of a layer that are known by what they do.
  static llvm::ArrayRef<llvm::StringLiteral> getParts();
};

} // namespace accel

#endif // ACCEL_LIB_NAMES_RECOMPUTEPOLICY_H
