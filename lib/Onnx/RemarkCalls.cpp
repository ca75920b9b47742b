// The list of operators that need no rule, and who is not in it.
#include "RemarkCalls.h"
#include "CallMeaning.h"
#include "ParameterDependence.h"
#include "llvm/ADT/StringSet.h"

using namespace llvm;

namespace accel::onnxio {

/// Operators that mean in training what their nodes compute: functions of their
/// operands, without states, random numbers or gradients of their own.
static bool isPlain(StringRef op) {
  static constexpr StringLiteral plain =
      "_safe_softmax _softmax _log_softmax _to_copy _unsafe_view "
      "abs add addbmm addcdiv addcmul "
      "addmm alias amax amin atan "
      "atan2 avg_pool2d baddbmm bilinear bmm cat celu clamp "
      "clamp_max clamp_min clone conv1d conv2d conv3d convolution "
      "cos cosh cross_entropy_loss cumsum detach diagonal div dot "
      "einsum elu embedding erf erfc exp expand expm1 flip floor "
      "fmod gather gelu getitem glu group_norm gru hardsigmoid "
      "hardswish hardtanh index index_add index_put index_select "
      "layer_norm leaky_relu lerp linalg_vector_norm linear log "
      "log10 log1p log2 log_sigmoid log_sigmoid_forward log_softmax "
      "logaddexp logsumexp lstm masked_fill matmul max max_pool2d "
      "max_pool2d_with_indices maximum mean min minimum mish mm "
      "mse_loss mul mv native_dropout native_group_norm "
      "native_layer_norm neg nll_loss nll_loss_forward norm pad "
      "permute pow prelu prod reciprocal relu remainder repeat "
      "reshape rms_norm roll round rsqrt rsub "
      "scaled_dot_product_attention scatter scatter_add select selu "
      "sigmoid sign silu sin sinh slice smooth_l1_loss softmax "
      "softplus sort split split_with_sizes sqrt squeeze stack std "
      "sub sum t tan tanh topk transpose tril triu type_as unbind "
      "unfold unsqueeze upsample_nearest2d var var_mean view where "
      "xlogy";
  static const llvm::StringSet<> names = [] {
    SmallVector<StringRef> list;
    plain.split(list, ' ');
    llvm::StringSet<> set;
    set.insert(list.begin(), list.end());
    return set;
  }();
  return names.contains(op);
}

std::vector<std::string> remarkCalls(const TracedProgram &program,
                                     const ParameterBuilder &builder) {
  ParameterDependence dependence(program, builder);
  llvm::StringSet<> seen;
  std::vector<std::string> remarks;
  for (const Call &call : program.calls()) {
    const std::string &op = call.text.op;
    bool isKnown = isPlain(op) || hasMeaningRow(op);
    if (isKnown || seen.contains(op) || dependence.of(call).empty())
      continue;
    seen.insert(op);
    remarks.push_back("call '" + call.text.result + "' (" + op +
                      ") is in no table of what calls mean in training: it is "
                      "taken for what its nodes compute");
  }
  return remarks;
}

} // namespace accel::onnxio
