// What calls mean in training beside what their nodes compute.
#include "CallMeaning.h"
#include "accel/Onnx/NodeInfo.h"
#include "llvm/ADT/StringSet.h"

using namespace llvm;

namespace accel::onnxio {

//===-- Random numbers ----------------------------------------------------===//

/// Whether a constant operand is there and is zero or false.
static bool isZero(const OnnxFile &file, const onnx::NodeProto &node,
                   int operand) {
  if (operand >= node.input_size())
    return false;
  const onnx::TensorProto *tensor = file.findInitializer(node.input(operand));
  return tensor && all_of(file.payload(*tensor).data,
                          [](char byte) { return byte == 0; });
}

bool drawsRandomNumbers(const onnx::NodeProto &node, const OnnxFile &file) {
  StringRef op = node.op_type();
  if (op == "Dropout")
    return node.input_size() > 2 && !node.input(2).empty() &&
           !isZero(file, node, 1) && !isZero(file, node, 2);
  return op.starts_with("Random") || op == "Bernoulli" || op == "Multinomial";
}

//===-- What importers ask ------------------------------------------------===//

bool stopsGradient(const onnx::NodeProto &node) {
  if (nodeProperty(node, "accel.stop_gradient") == "1")
    return true;
  std::optional<TracedCall> call = tracedCall(node);
  return call && (call->op == "detach" || call->op == "detach_");
}

double getLabelSmoothing(const onnx::NodeProto &node) {
  // cross_entropy_loss(self, target, weight, reduction, ignore_index,
  // label_smoothing)
  std::optional<TracedCall> call = tracedCall(node);
  if (!call || call->op != "cross_entropy_loss")
    return 0;
  const TracedArgument *argument = call->argument(5, "label_smoothing");
  double smoothing = 0;
  if (!argument || StringRef(argument->text).getAsDouble(smoothing))
    return 0;
  return smoothing;
}

//===-- The table ---------------------------------------------------------===//

bool speaksOfDetaching(const onnx::NodeProto &node) {
  return nodeProperty(node, "pkg.torch.onnx.stack_trace").contains(".detach(");
}

static StringRef textOf(const Call &call, unsigned position,
                        StringRef keyword) {
  const TracedArgument *argument = call.text.argument(position, keyword);
  return argument ? StringRef(argument->text) : StringRef();
}

static bool hasNode(const Call &call, StringRef op) {
  return any_of(call.nodes, [&](const onnx::NodeProto *node) {
    return StringRef(node->op_type()) == op;
  });
}

static bool isPositive(StringRef text) {
  double value;
  return !text.getAsDouble(value) && value > 0;
}

/// scaled_dot_product_attention(query, key, value, attn_mask, dropout_p, …)
static std::string checkAttention(const Call &call) {
  StringRef dropout = textOf(call, 4, "dropout_p");
  if (!isPositive(dropout) || hasNode(call, "Dropout"))
    return {};
  return "drops weights of attention with probability " + dropout.str() +
         ", and its nodes do not";
}

/// native_dropout(input, p, train), dropout(input, p, train)
static std::string checkDropout(const Call &call) {
  if (!isPositive(textOf(call, 1, "p")) || textOf(call, 2, "train") != "True" ||
      hasNode(call, "Dropout"))
    return {};
  return "drops elements in training, and its nodes do not";
}

/// batch_norm(input, weight, bias, running_mean, running_var, training, …) and
/// its native forms.
static std::string checkBatchNorm(const Call &call) {
  if (textOf(call, 5, "training") != "True")
    return {};
  for (const onnx::NodeProto *node : call.nodes) {
    const onnx::AttributeProto *mode = findAttribute(*node, "training_mode");
    if (node->op_type() == "BatchNormalization" && (!mode || mode->i() == 0))
      return "normalizes by the statistics of the batch, and its node by "
             "running ones";
  }
  return {};
}

/// embedding(weight, indices, padding_idx, scale_grad_by_freq, sparse)
static std::string checkEmbedding(const Call &call) {
  if (textOf(call, 4, "sparse") == "True")
    return "has sparse gradients, which PyTorch's optimizers treat otherwise "
           "than dense ones";
  return {};
}

static std::string checkRenorm(const Call &) {
  return "renormalizes rows of an embedding in place ('max_norm'), and nodes "
         "cannot";
}

namespace {
struct Row {
  /// The operator, or its beginning if it ends in `*`.
  StringLiteral op;
  std::string (*check)(const Call &call);
};
} // namespace

static const Row rows[] = {
    {"scaled_dot_product_attention", checkAttention},
    {"native_dropout", checkDropout},
    {"dropout", checkDropout},
    {"batch_norm", checkBatchNorm},
    {"native_batch_norm", checkBatchNorm},
    {"_native_batch_norm_legit*", checkBatchNorm},
    {"embedding", checkEmbedding},
    {"embedding_renorm*", checkRenorm},
};

static bool matches(StringRef pattern, StringRef op) {
  return pattern.consume_back("*") ? op.starts_with(pattern) : op == pattern;
}

//===-- Where calls were made ---------------------------------------------===//

namespace {
struct Frame {
  StringRef file, function, text;
};
} // namespace

/// The frames of a stack trace as Python prints them, outermost first.
static SmallVector<Frame> readFrames(StringRef trace) {
  SmallVector<Frame> frames;
  while (!trace.empty()) {
    auto [head, rest] = trace.split('\n');
    trace = rest;
    StringRef line = head.ltrim();
    if (!line.consume_front("File \""))
      continue;
    Frame frame;
    frame.file = line.split('"').first;
    frame.function = line.rsplit(", in ").second;
    if (!trace.ltrim().starts_with("File \""))
      frame.text = trace.split('\n').first.trim();
    frames.push_back(frame);
  }
  return frames;
}

/// Code that torch.export made of a region: of `torch.no_grad()` or
/// `autocast()`, whose body it traces on its own. Of `inference_mode()` nothing
/// is left.
static bool isWithinRegion(ArrayRef<Frame> frames) {
  return !frames.empty() && frames.back().file.starts_with("<eval_with_key>");
}

/// Autograd functions of libraries whose backward is the derivative of their
/// forward, written out: by the call and the end of their file's name.
static const std::pair<StringLiteral, StringLiteral> derivatives[] = {
    {"GeLUFunction.apply(", "transformers/models/bloom/modeling_bloom.py"},
};

bool speaksOfFunction(const onnx::NodeProto &node) {
  StringRef trace = nodeProperty(node, "pkg.torch.onnx.stack_trace");
  return trace.contains(".apply(") &&
         none_of(derivatives,
                 [&](const auto &each) { return trace.contains(each.first); });
}

/// `Function.apply(…)` calls `forward` of an autograd function.
static bool isWithinFunction(ArrayRef<Frame> frames) {
  for (size_t i = 0; i + 1 < frames.size(); ++i) {
    bool isDerivative = any_of(derivatives, [&](const auto &each) {
      return frames[i].text.contains(each.first) &&
             frames[i + 1].file.ends_with(each.second);
    });
    if (frames[i].text.contains(".apply(") &&
        frames[i + 1].function == "forward" && !isDerivative)
      return true;
  }
  return false;
}

namespace {
/// Which parameters values depend on.
class Dependence {
public:
  Dependence(const TracedProgram &program, const ParameterBuilder &builder)
      : program(program), builder(builder) {
    for (unsigned i = 0; i < builder.size(); ++i)
      builder.forEachClaim(i, [&](const InitializerUse &use) {
        claims[{use.node, use.operand}] = i;
      });
  }
  /// The parameters that go into the call's nodes, by name.
  std::vector<std::string> of(const Call &call) const;

private:
  const TracedProgram &program;
  const ParameterBuilder &builder;
  llvm::DenseMap<std::pair<const onnx::NodeProto *, unsigned>, unsigned> claims;
};
} // namespace

std::vector<std::string> Dependence::of(const Call &call) const {
  SmallVector<const onnx::NodeProto *> work(call.nodes.begin(),
                                            call.nodes.end());
  llvm::DenseSet<const onnx::NodeProto *> seen(work.begin(), work.end());
  llvm::SmallDenseSet<unsigned> found;
  while (!work.empty()) {
    const onnx::NodeProto *each = work.pop_back_val();
    for (int i = 0; i < each->input_size(); ++i) {
      if (auto it = claims.find({each, unsigned(i)}); it != claims.end())
        found.insert(it->second);
      const onnx::NodeProto *maker = program.maker(each->input(i));
      if (maker && seen.insert(maker).second)
        work.push_back(maker);
    }
  }
  SmallVector<unsigned> sorted(found.begin(), found.end());
  llvm::sort(sorted);
  std::vector<std::string> names;
  for (unsigned parameter : sorted)
    names.push_back(builder.nameOf(parameter).str());
  return names;
}

/// Operators that mean in training what their nodes compute: functions of their
/// operands, without states, random numbers or gradients of their own.
static bool isPlain(StringRef op) {
  static const llvm::StringSet<> plain = {"_safe_softmax",
                                          "_softmax",
                                          "_log_softmax",
                                          "_to_copy",
                                          "_unsafe_view",
                                          "abs",
                                          "add",
                                          "addbmm",
                                          "addcdiv",
                                          "addcmul",
                                          "addmm",
                                          "alias",
                                          "amax",
                                          "amin",
                                          "atan",
                                          "atan2",
                                          "avg_pool2d",
                                          "baddbmm",
                                          "bilinear",
                                          "bmm",
                                          "cat",
                                          "celu",
                                          "clamp",
                                          "clamp_max",
                                          "clamp_min",
                                          "clone",
                                          "conv1d",
                                          "conv2d",
                                          "conv3d",
                                          "convolution",
                                          "cos",
                                          "cosh",
                                          "cross_entropy_loss",
                                          "cumsum",
                                          "detach",
                                          "diagonal",
                                          "div",
                                          "dot",
                                          "einsum",
                                          "elu",
                                          "embedding",
                                          "erf",
                                          "erfc",
                                          "exp",
                                          "expand",
                                          "expm1",
                                          "flip",
                                          "floor",
                                          "fmod",
                                          "gather",
                                          "gelu",
                                          "getitem",
                                          "glu",
                                          "group_norm",
                                          "gru",
                                          "hardsigmoid",
                                          "hardswish",
                                          "hardtanh",
                                          "index",
                                          "index_add",
                                          "index_put",
                                          "index_select",
                                          "layer_norm",
                                          "leaky_relu",
                                          "lerp",
                                          "linalg_vector_norm",
                                          "linear",
                                          "log",
                                          "log10",
                                          "log1p",
                                          "log2",
                                          "log_sigmoid",
                                          "log_sigmoid_forward",
                                          "log_softmax",
                                          "logaddexp",
                                          "logsumexp",
                                          "lstm",
                                          "masked_fill",
                                          "matmul",
                                          "max",
                                          "max_pool2d",
                                          "max_pool2d_with_indices",
                                          "maximum",
                                          "mean",
                                          "min",
                                          "minimum",
                                          "mish",
                                          "mm",
                                          "mse_loss",
                                          "mul",
                                          "mv",
                                          "native_dropout",
                                          "native_group_norm",
                                          "native_layer_norm",
                                          "neg",
                                          "nll_loss",
                                          "nll_loss_forward",
                                          "norm",
                                          "pad",
                                          "permute",
                                          "pow",
                                          "prelu",
                                          "prod",
                                          "reciprocal",
                                          "relu",
                                          "remainder",
                                          "repeat",
                                          "reshape",
                                          "rms_norm",
                                          "roll",
                                          "round",
                                          "rsqrt",
                                          "rsub",
                                          "scaled_dot_product_attention",
                                          "scatter",
                                          "scatter_add",
                                          "select",
                                          "selu",
                                          "sigmoid",
                                          "sign",
                                          "silu",
                                          "sin",
                                          "sinh",
                                          "slice",
                                          "smooth_l1_loss",
                                          "softmax",
                                          "softplus",
                                          "sort",
                                          "split",
                                          "split_with_sizes",
                                          "sqrt",
                                          "squeeze",
                                          "stack",
                                          "std",
                                          "sub",
                                          "sum",
                                          "t",
                                          "tan",
                                          "tanh",
                                          "topk",
                                          "transpose",
                                          "tril",
                                          "triu",
                                          "type_as",
                                          "unbind",
                                          "unfold",
                                          "unsqueeze",
                                          "upsample_nearest2d",
                                          "var",
                                          "var_mean",
                                          "view",
                                          "where",
                                          "xlogy"};
  return plain.contains(op);
}

std::vector<std::string> remarkCalls(const TracedProgram &program,
                                     const ParameterBuilder &builder) {
  Dependence dependence(program, builder);
  llvm::StringSet<> seen;
  std::vector<std::string> remarks;
  for (const Call &call : program.calls()) {
    const std::string &op = call.text.op;
    bool isKnown = isPlain(op) || any_of(rows, [&](const Row &row) {
                     return matches(row.op, op);
                   });
    if (isKnown || seen.contains(op) || dependence.of(call).empty())
      continue;
    seen.insert(op);
    remarks.push_back("call '" + call.text.result + "' (" + op +
                      ") is in no table of what calls mean in training: it is "
                      "taken for what its nodes compute");
  }
  return remarks;
}

static constexpr StringLiteral kRegionMessage =
    "was made in a region (torch.no_grad() or autocast()) of which the file "
    "does not tell whether gradients pass";

void checkCallMeaning(const TracedProgram &program,
                      const ParameterBuilder &builder,
                      std::vector<Doubt> &doubts) {
  Dependence dependence(program, builder);
  bool isAllGenerated = true;
  std::vector<std::pair<const Call *, SmallVector<Frame>>> traces;
  for (const Call &call : program.calls()) {
    traces.emplace_back(&call,
                        readFrames(nodeProperty(*call.nodes.front(),
                                                "pkg.torch.onnx.stack_trace")));
    isAllGenerated &= isWithinRegion(traces.back().second);
  }
  std::optional<Doubt> region;
  for (const auto &trace : traces) {
    const Call *call = trace.first;
    ArrayRef<Frame> frames = trace.second;
    const onnx::NodeProto &node = *call->nodes.front();
    std::string what =
        "the traced call '" + call->text.result + "' (" + call->text.op + ") ";
    // Where no parameter is, no gradient is.
    auto doubt = [&](const std::string &message) {
      std::vector<std::string> names = dependence.of(*call);
      if (!names.empty())
        doubts.push_back(
            {&node, std::move(names), what + message, Doubt::Meaning});
    };
    for (const Row &row : rows)
      if (matches(row.op, call->text.op))
        if (std::string message = row.check(*call); !message.empty())
          doubt(message);
    if (call->text.op == "alias" && speaksOfDetaching(node))
      doubt("may have been a detach, which decompositions turn into it");
    if (isWithinFunction(frames))
      doubt("was made by the forward of an autograd function, whose backward "
            "the file does not hold");
    // A program that was traced twice has no lines of its own.
    if (isAllGenerated || !isWithinRegion(frames))
      continue;
    std::vector<std::string> names = dependence.of(*call);
    if (names.empty())
      continue;
    // Told once, of all parameters that go into any region.
    if (!region)
      region = Doubt{&node, {}, what + kRegionMessage.str(), Doubt::Meaning};
    for (std::string &name : names)
      if (!is_contained(region->parameters, name))
        region->parameters.push_back(std::move(name));
  }
  if (region)
    doubts.push_back(std::move(*region));
  for (const std::string &name : program.mutated())
    doubts.push_back({nullptr,
                      {},
                      "the forward changes '" + name +
                          "', and the file does not carry it from step to step",
                      Doubt::Meaning});
}

} // namespace accel::onnxio
