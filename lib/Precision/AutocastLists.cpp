// torch.autocast's lists: in which type each operation runs. From PyTorch 2.13,
// aten/src/ATen/autocast_mode.h (AT_FORALL_…: CUDA) and autocast_mode.cpp
// (KERNEL_CPU), without what import has no operators for: upsampling, recurrent
// cells, Fourier transforms, factorisations, samplers. The lists' "widest" says
// what follows from types anyway, and has no rows.

#include "AutocastLists.h"

#include "dialects/Interfaces/Castable.h"
#include "dialects/NN/NN.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace accel;
using namespace accel::precision;

std::optional<AutocastList> precision::parseAutocastList(StringRef name) {
  auto [cuda, cpu] = StringRef("cuda,cpu").split(',');
  if (name == cuda)
    return AutocastList::Cuda;
  if (name == cpu)
    return AutocastList::Cpu;
  return std::nullopt;
}

namespace {
struct Row {
  llvm::StringLiteral name;
  CastPolicy cuda, cpu;
};
} // namespace

static constexpr CastPolicy kLow = CastPolicy::Low, kWide = CastPolicy::Wide,
                            kFollows = CastPolicy::Follows;

static constexpr Row kRows[] = {
    {"_scaled_dot_product_flash_attention", kLow, kFollows},
    {"_addmm_activation", kFollows, kLow},
    {"addbmm", kLow, kLow},
    {"addmm", kLow, kLow},
    {"addmv", kLow, kFollows},
    {"addr", kLow, kFollows},
    {"baddbmm", kLow, kLow},
    {"bmm", kLow, kLow},
    {"chain_matmul", kLow, kLow}, // on CPUs it calls mm
    {"conv1d", kLow, kLow},
    {"conv2d", kLow, kLow},
    {"conv3d", kLow, kLow},
    {"conv_transpose1d", kLow, kLow},
    {"conv_transpose2d", kLow, kLow},
    {"conv_transpose3d", kLow, kLow},
    {"convolution", kLow, kFollows}, // on CPUs conv1d and others call it
    {"einsum", kLow, kLow},          // on CPUs it calls bmm
    {"linalg_multi_dot", kLow, kLow},
    {"linalg_vecdot", kLow, kLow},
    {"linear", kLow, kLow},
    {"matmul", kLow, kLow},
    {"mm", kLow, kLow},
    {"mv", kLow, kFollows},
    {"prelu", kLow, kLow},
    {"scaled_dot_product_attention", kLow, kLow},

    {"acos", kWide, kFollows},
    {"asin", kWide, kFollows},
    {"cosh", kWide, kFollows},
    {"erfinv", kWide, kFollows},
    {"exp", kWide, kFollows},
    {"expm1", kWide, kFollows},
    {"log", kWide, kFollows},
    {"log10", kWide, kFollows},
    {"log1p", kWide, kFollows},
    {"log2", kWide, kFollows},
    {"pow", kWide, kFollows},
    {"reciprocal", kWide, kFollows},
    {"rsqrt", kWide, kFollows},
    {"sinh", kWide, kFollows},
    {"softplus", kWide, kFollows},
    {"square", kWide, kFollows}, // calls pow
    {"tan", kWide, kFollows},

    {"cumprod", kWide, kFollows},
    {"cumsum", kWide, kFollows},
    {"frobenius_norm", kWide, kFollows},
    {"group_norm", kWide, kFollows},
    {"layer_norm", kWide, kFollows},
    {"linalg_matrix_norm", kWide, kFollows},
    {"linalg_norm", kWide, kFollows}, // calls the two others
    {"linalg_vector_norm", kWide, kFollows},
    {"_log_softmax", kWide, kFollows}, // what log_softmax is taken apart to
    {"log_softmax", kWide, kFollows},
    {"logsumexp", kWide, kFollows},
    {"native_layer_norm", kWide, kFollows},
    {"norm", kWide, kFollows},
    {"nuclear_norm", kWide, kFollows},
    {"prod", kWide, kWide},
    {"renorm", kWide, kFollows},
    {"rms_norm", kWide, kFollows},
    {"_softmax", kWide, kFollows},
    {"softmax", kWide, kFollows},
    {"sum", kWide, kFollows},
    {"trace", kFollows, kWide},

    {"nanquantile", kFollows, kWide},
    {"polar", kFollows, kWide},
    {"quantile", kFollows, kWide},
    {"reflection_pad1d", kFollows, kWide},
    {"reflection_pad2d", kFollows, kWide},
    {"replication_pad1d", kFollows, kWide},
    {"replication_pad2d", kFollows, kWide},
    {"replication_pad3d", kFollows, kWide},
    {"view_as_complex", kFollows, kWide},

    // CUDA's autocast refuses this one, and asks for the one of logits.
    {"binary_cross_entropy", kWide, kWide},
    {"binary_cross_entropy_with_logits", kWide, kWide},
    {"cdist", kWide, kWide},
    {"cosine_embedding_loss", kWide, kWide},
    {"cosine_similarity", kWide, kFollows},
    {"cross_entropy_loss", kWide, kWide}, // on CUDA log_softmax and nll_loss
    {"dist", kWide, kFollows},
    {"hinge_embedding_loss", kWide, kWide},
    {"huber_loss", kWide, kWide},
    {"kl_div", kWide, kWide},
    {"l1_loss", kWide, kWide},
    {"margin_ranking_loss", kWide, kWide},
    {"mse_loss", kWide, kWide},
    {"multi_margin_loss", kWide, kWide},
    {"multilabel_margin_loss", kWide, kWide},
    {"nll_loss", kWide, kWide},
    {"nll_loss2d", kWide, kWide},
    {"nll_loss2d_forward", kWide, kWide},
    {"nll_loss_forward", kWide, kWide},
    {"nll_loss_nd", kWide, kWide},
    {"pdist", kWide, kFollows},
    {"poisson_nll_loss", kWide, kWide},
    {"smooth_l1_loss", kWide, kWide},
    {"soft_margin_loss", kWide, kWide},
    {"triplet_margin_loss", kWide, kWide},
};

static CastPolicy pick(AutocastList list, const Row &row) {
  return list == AutocastList::Cuda ? row.cuda : row.cpu;
}

CastPolicy precision::getPolicyOfCall(AutocastList list, StringRef name) {
  const Row *found =
      llvm::find_if(kRows, [&](const Row &row) { return row.name == name; });
  return found == std::end(kRows) ? kFollows : pick(list, *found);
}

/// The operator that an op stands for; empty for one of no list.
static StringRef getOperator(Operation *op) {
  return llvm::TypeSwitch<Operation *, StringRef>(op)
      .Case([](nn::ExpOp) { return "exp"; })
      .Case([](nn::LogOp) { return "log"; })
      .Case([](nn::Log1pOp) { return "log1p"; })
      .Case([](nn::RsqrtOp) { return "rsqrt"; })
      .Case([](nn::ReciprocalOp) { return "reciprocal"; })
      .Case([](nn::PowOp) { return "pow"; })
      .Case([](nn::SoftmaxOp) { return "softmax"; })
      .Case([](nn::LayerNormOp) { return "layer_norm"; })
      .Case([](nn::CumsumOp) { return "cumsum"; })
      .Case([](nn::CrossEntropyOp) { return "cross_entropy_loss"; })
      .Case([](nn::ReduceOp op) {
        return op.getKind() == nn::ReductionKind::sum    ? "sum"
               : op.getKind() == nn::ReductionKind::prod ? "prod"
                                                         : "";
      })
      .Default([](Operation *) { return ""; });
}

CastPolicy precision::getPolicyOfOp(AutocastList list, Operation *op) {
  if (isa<CastableOpInterface>(op))
    return kLow;
  return getPolicyOfCall(list, getOperator(op));
}
