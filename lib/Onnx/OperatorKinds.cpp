// Tables of operators by name.
#include "OperatorKinds.h"
#include "llvm/ADT/StringSwitch.h"

using namespace llvm;

namespace accel::onnxio {

bool makesConstant(StringRef op) {
  return StringSwitch<bool>(op)
      .Cases({"zeros",
              "ones",
              "full",
              "empty",
              "arange",
              "eye",
              "tril_indices",
              "triu_indices",
              "linspace",
              "scalar_tensor",
              "lift_fresh_copy",
              "zeros_like",
              "ones_like",
              "full_like",
              "empty_like",
              "new_zeros",
              "new_ones",
              "new_full",
              "new_empty",
              "scalar_tensor_default"},
             true)
      .Default(false);
}

bool isMove(StringRef op) {
  return StringSwitch<bool>(op)
      .Cases({"view",     "_unsafe_view", "reshape",    "expand",  "slice",
              "select",   "unsqueeze",    "squeeze",    "permute", "transpose",
              "t",        "numpy_t",      "contiguous", "getitem", "type_as",
              "_to_copy", "alias",        "clone",      "copy",    "flatten",
              "index",    "cat"},
             true)
      .Default(false);
}

bool takesIndices(StringRef op) {
  return op.starts_with("index") || op.starts_with("scatter") ||
         op.starts_with("masked") ||
         StringSwitch<bool>(op)
             .Cases({"embedding", "gather", "take", "where",
                     "cross_entropy_loss", "nll_loss", "nll_loss_forward",
                     "scaled_dot_product_attention"},
                    true)
             .Default(false);
}

bool isComposite(StringRef op) {
  return StringSwitch<bool>(op)
      .Cases({"linear", "layer_norm", "scaled_dot_product_attention", "matmul",
              "cross_entropy_loss", "mse_loss", "softmax", "log_softmax"},
             true)
      .Default(false);
}

} // namespace accel::onnxio
