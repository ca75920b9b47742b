// Identification of parameters in files without a graph signature
// (TorchScript's exporter, other frameworks): by operand position, and by
// dotted names as PyTorch's modules have them.
#include "ParameterBuilder.h"
#include "ParameterRoles.h"
#include "llvm/ADT/StringSwitch.h"

using namespace llvm;
using namespace mlir;

namespace accel::onnxio {

namespace {
/// What a use says of an initializer.
enum class UseKind {
  /// A position where only weights and biases stand.
  Weight,
  /// A table that indices select rows of: an embedding, if its name says so.
  Table,
  /// A running statistic.
  Statistic,
  /// Anything else, which does not decide.
  Other,
};
} // namespace

static UseKind kindOfUse(const InitializerUse &use) {
  StringRef op = use.node->op_type();
  unsigned operand = use.operand;
  int rank = use.tensor->dims_size();
  if (op == "MatMul")
    return rank == 2 ? UseKind::Weight : UseKind::Other;
  if (op == "Gemm")
    return operand == 2 || rank == 2 ? UseKind::Weight : UseKind::Other;
  if (op == "BatchNormalization")
    return operand >= 3 ? UseKind::Statistic : UseKind::Weight;
  if (op == "Conv" || op == "ConvTranspose" || op == "LayerNormalization" ||
      op == "GroupNormalization" || op == "InstanceNormalization" ||
      op == "RMSNormalization" || op == "SimplifiedLayerNormalization" ||
      op == "PRelu")
    return operand >= 1 ? UseKind::Weight : UseKind::Other;
  if (op == "LSTM" || op == "GRU" || op == "RNN")
    return operand >= 1 && operand <= 3 ? UseKind::Weight : UseKind::Other;
  if (op == "Gather" && operand == 0 && rank == 2)
    return UseKind::Table;
  return UseKind::Other;
}

/// `model.layers.0.weight`, and not `/model/Mul_output_0` or `onnx::Mul_1.x`.
static bool isModuleName(StringRef name) {
  return name.contains('.') && !name.contains("::") && !name.contains('/');
}

/// Buffers that PyTorch's modules register under these names.
static bool isBufferName(StringRef name) {
  StringRef leaf = name.rsplit('.').second;
  return leaf.contains("inv_freq") || leaf.contains("mask") ||
         llvm::StringSwitch<bool>(leaf)
             .Cases({"running_mean", "running_var", "num_batches_tracked",
                     "position_ids", "token_type_ids", "cos_cached",
                     "sin_cached", "freqs_cis"},
                    true)
             .Default(false);
}

namespace {
class ByName {
public:
  ByName(const OnnxFile &file, ParameterBuilder &builder,
         std::vector<std::string> &notes)
      : file(file), builder(builder), notes(notes) {}
  void run();

private:
  std::optional<std::string> reason(const onnx::TensorProto &tensor,
                                    ArrayRef<InitializerUse> uses);
  void identify(const onnx::TensorProto &tensor, ArrayRef<InitializerUse> uses);
  const onnx::TensorProto *untransposed(const onnx::TensorProto &tensor) const;

  const OnnxFile &file;
  ParameterBuilder &builder;
  std::vector<std::string> &notes;
  std::vector<const onnx::TensorProto *> namedMatrices;
};
} // namespace

/// Why an initializer is a parameter, or nothing.
std::optional<std::string> ByName::reason(const onnx::TensorProto &tensor,
                                          ArrayRef<InitializerUse> uses) {
  bool isNamed = isModuleName(tensor.name());
  if (isNamed && isBufferName(tensor.name()))
    return std::nullopt;
  const InitializerUse *table = nullptr;
  for (const InitializerUse &use : uses) {
    UseKind kind = kindOfUse(use);
    if (kind == UseKind::Statistic)
      return std::nullopt;
    if (kind == UseKind::Weight)
      return "operand " + std::to_string(use.operand) + " of node '" +
             use.node->name() + "' (" + use.node->op_type() +
             ") is a weight or bias";
    if (kind == UseKind::Table)
      table = &use;
  }
  if (isNamed) {
    // The first use of its own: Identity only hands it to other names.
    auto own = llvm::find_if(uses, [](const InitializerUse &use) {
      return use.node->op_type() != "Identity";
    });
    const onnx::NodeProto &node =
        own == uses.end() ? *uses.front().node : *own->node;
    return "named as a module's parameter, and used by node '" + node.name() +
           "' (" + node.op_type() + ")";
  }
  if (table)
    notes.push_back("initializer '" + tensor.name() +
                    "' may be an embedding or a constant table: neither its "
                    "name nor its use by node '" +
                    table->node->name() +
                    "' tells; it is taken for a constant unless --trainable "
                    "names it");
  return std::nullopt;
}

/// The named matrix whose transpose `tensor` holds: a tied weight that the
/// exporter transposed under a name of its own. Only values can tell, so only
/// matrices that are not all one value count.
const onnx::TensorProto *
ByName::untransposed(const onnx::TensorProto &tensor) const {
  if (tensor.dims_size() != 2 || isModuleName(tensor.name()))
    return nullptr;
  // Values are asked for only where shapes leave it open.
  for (const onnx::TensorProto *named : namedMatrices)
    if (named->data_type() == tensor.data_type() &&
        named->dims(0) == tensor.dims(1) && named->dims(1) == tensor.dims(0) &&
        !isUniform(file, tensor) &&
        holdSame(file, *named, {0, 1}, tensor, {1, 0}))
      return named;
  return nullptr;
}

void ByName::identify(const onnx::TensorProto &tensor,
                      ArrayRef<InitializerUse> uses) {
  std::optional<std::string> why = reason(tensor, uses);
  if (!why)
    return;
  SmallVector<int64_t, 4> same = identityPermutation(tensor.dims_size());
  if (const onnx::TensorProto *named = untransposed(tensor)) {
    unsigned parameter = *builder.find(named->name());
    for (const InitializerUse &use : uses)
      builder.claim(parameter, use, {1, 0}, *why);
    return;
  }
  unsigned parameter = builder.add(tensor.name());
  for (const InitializerUse &use : uses) {
    // Equal initializers are merged through Identity, which keeps the name.
    StringRef output;
    if (use.node->output_size())
      output = use.node->output(0);
    if (use.node->op_type() != "Identity" || !isModuleName(output)) {
      builder.claim(parameter, use, same, *why);
      continue;
    }
    unsigned other = builder.add(output);
    builder.claim(other, use, same,
                  "named by node '" + use.node->name() +
                      "' (Identity), which copies initializer '" +
                      tensor.name() + "'");
    if (!isUniform(file, tensor))
      builder.tie(parameter, other,
                  "'" + output.str() +
                      "' is the same: it holds equal values "
                      "that are not all one");
  }
}

void ByName::run() {
  llvm::MapVector<const onnx::TensorProto *, std::vector<InitializerUse>> uses;
  for (const onnx::TensorProto &tensor : file.graph().initializer())
    if (isFloatTensor(tensor))
      uses[&tensor];
  for (const InitializerUse &use : initializerUses(file))
    if (isFloatTensor(*use.tensor))
      uses[use.tensor].push_back(use);
  // Named ones first, so that transposed copies find them; the table keeps the
  // file's order among each.
  for (bool named : {true, false})
    for (auto &[tensor, list] : uses)
      if (!list.empty() && isModuleName(tensor->name()) == named) {
        identify(*tensor, list);
        if (named && tensor->dims_size() == 2 && builder.find(tensor->name()))
          namedMatrices.push_back(tensor);
      }
}

LogicalResult identifyByName(const OnnxFile &file, ParameterBuilder &builder,
                             std::vector<std::string> &notes) {
  ByName(file, builder, notes).run();
  return success();
}

} // namespace accel::onnxio
