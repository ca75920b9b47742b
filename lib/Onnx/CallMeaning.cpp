// What calls mean in training beside what their nodes compute.
#include "CallMeaning.h"
#include "BatchNorms.h"
#include "CallFrames.h"
#include "ForwardFrames.h"
#include "NodeInfo.h"
#include "ParameterDependence.h"
#include "llvm/Support/Path.h"

using namespace llvm;

namespace accel::onnxio {

//===-- Random numbers ----------------------------------------------------===//

/// Whether a value is a constant, and zero or false.
static bool isZero(const OnnxFile &file, StringRef value) {
  const onnx::TensorProto *tensor = file.findInitializer(value);
  return tensor &&
         all_of(file.values(*tensor), [](char byte) { return byte == 0; });
}

bool drawsRandomNumbers(const onnx::NodeProto &node, const OnnxFile &file) {
  StringRef op = node.op_type();
  if (op == "Dropout")
    return node.input_size() > 2 && !node.input(2).empty() &&
           !isZero(file, node.input(1)) && !isZero(file, node.input(2));
  return op.starts_with("Random") || op == "Bernoulli" || op == "Multinomial";
}

//===-- What importers ask ------------------------------------------------===//

std::optional<int64_t> getPaddingIndex(const onnx::NodeProto &node) {
  // embedding(weight, indices, padding_idx = -1, …)
  std::optional<TracedCall> call = tracedCall(node);
  if (!call || call->op != "embedding")
    return std::nullopt;
  const TracedArgument *padding = call->argument(2, "padding_idx");
  int64_t index;
  if (!padding || StringRef(padding->text).getAsInteger(10, index) || index < 0)
    return std::nullopt;
  return index;
}

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
/// its native forms. PyTorch's exporter writes a node of inference, which its
/// call corrects (BatchNorms.h); its optimizer believes the node, and folds it
/// into the product before.
static std::string checkBatchNorm(const Call &call) {
  bool takesStatistics = any_of(call.nodes, [](const onnx::NodeProto *node) {
    return StringRef(node->op_type()).starts_with("Reduce");
  });
  if (textOf(call, 5, "training") != "True" || takesStatistics ||
      hasNode(call, "BatchNormalization"))
    return {};
  return "normalizes by the statistics of the batch, and its nodes by running "
         "ones";
}

/// embedding(weight, indices, padding_idx, scale_grad_by_freq, sparse)
static std::string checkFrequency(const Call &call) {
  if (textOf(call, 3, "scale_grad_by_freq") != "True")
    return {};
  return "divides gradients by how often a row is picked "
         "('scale_grad_by_freq'), and nodes cannot";
}

static std::string checkSparse(const Call &call) {
  if (textOf(call, 4, "sparse") != "True")
    return {};
  return "has sparse gradients, which PyTorch's optimizers treat otherwise "
         "than dense ones";
}

static std::string checkRenorm(const Call &) {
  return "renormalizes rows of an embedding in place ('max_norm'), and nodes "
         "cannot";
}

namespace {
struct MeaningRow {
  /// The operator, or its beginning if it ends in `*`.
  StringLiteral op;
  std::string (*check)(const Call &call);
  /// Of what acc-export refuses as well.
  StringLiteral remedy = "";
};
} // namespace

static const MeaningRow kMeaningRows[] = {
    {"scaled_dot_product_attention", checkAttention},
    {"native_dropout", checkDropout},
    {"dropout", checkDropout},
    {"batch_norm", checkBatchNorm},
    {"native_batch_norm", checkBatchNorm},
    {"_native_batch_norm_legit*", checkBatchNorm},
    {"embedding", checkFrequency, "leave 'scale_grad_by_freq' out"},
    {"embedding", checkSparse,
     "leave 'sparse' out, the step is the same for SGD"},
    {"embedding_renorm*", checkRenorm,
     "leave 'max_norm' out, or normalize what is looked up"},
};

static bool matches(StringRef pattern, StringRef op) {
  return pattern.consume_back("*") ? op.starts_with(pattern) : op == pattern;
}

bool hasMeaningRow(StringRef op) {
  return any_of(kMeaningRows,
                [&](const MeaningRow &row) { return matches(row.op, op); });
}

static constexpr StringLiteral kFunctionRemedy =
    "export with acc-export, which tries the backward, or assign the module "
    "in __init__";

static constexpr StringLiteral kRegionMessage =
    "was made in a region (torch.no_grad() or autocast()) of which the file "
    "does not tell whether gradients pass";

void checkCallMeaning(const TracedProgram &program,
                      const ParameterBuilder &builder,
                      std::vector<Doubt> &doubts) {
  ParameterDependence dependence(program, builder);
  ForwardFrames forwards(program);
  // A program that was traced twice has no lines of its own.
  bool isAllGenerated = all_of(program.calls(), [](const Call &call) {
    return isWithinRegion(*call.nodes.front());
  });
  std::optional<Doubt> region;
  for (const Call &call : program.calls()) {
    const onnx::NodeProto &node = *call.nodes.front();
    std::string what =
        "the traced call '" + call.text.result + "' (" + call.text.op + ") ";
    // Where no parameter is, no gradient is.
    auto doubt = [&](const std::string &message, StringRef remedy = "") {
      std::vector<std::string> names = dependence.of(call);
      if (!names.empty())
        doubts.push_back({&node, std::move(names), what + message,
                          Doubt::Meaning, remedy.str()});
    };
    auto doubtFunction = [&](const ForwardFrames::Function &function) {
      if (function.isApplied)
        return doubt("was made by the forward of an autograd function, whose "
                     "backward the file does not hold");
      const SourceLine &frame = function.frame;
      doubt("was made by the forward of an autograd function, whose backward "
            "the file does not hold, or of a module that is no attribute of "
            "another (" +
                sys::path::filename(frame.file).str() + ":" +
                std::to_string(frame.line) + ")",
            kFunctionRemedy);
    };
    for (const MeaningRow &row : kMeaningRows)
      if (matches(row.op, call.text.op))
        if (std::string message = row.check(call); !message.empty())
          doubt(message, row.remedy);
    if (call.text.op == "alias" && speaksOfDetaching(node))
      doubt("may have been a detach, which decompositions turn into it");
    if (auto function = forwards.functionAround(node))
      doubtFunction(*function);
    if (isAllGenerated || !isWithinRegion(node))
      continue;
    std::vector<std::string> names = dependence.of(call);
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
  llvm::StringSet<> kept = BatchNorms(program.file).listKept();
  for (const std::string &name : program.mutated())
    if (!kept.contains(name))
      doubts.push_back(
          {nullptr,
           {},
           "the forward changes '" + name +
               "', and the file does not carry it from step to step",
           Doubt::Meaning,
           "compute without writing to it, or call eval() on the "
           "part that does"});
}

} // namespace accel::onnxio
