// The table of roles. Rows were read off torch 2.6 and 2.13 exports of twelve
// model families; an operator that is missing costs identity by table, not by
// name: see Parameters.cpp.
#include "ParameterRoles.h"
#include "NodeInfo.h"

using namespace llvm;

namespace accel::onnxio {

namespace {
/// How the operand holds the argument.
enum class Layout {
  Same,
  /// A linear weight (out, in) where the operator wants (in, out).
  Swapped,
  /// Gemm's B: transposed if transB is 1.
  GemmB,
  /// Gemm's B that stands for a linear weight: transposed unless transB is 1.
  GemmBSwapped,
  /// Gemm's A: transposed if transA is 1.
  GemmA,
  /// What is indexed: the dimensions with an index come first.
  Indexed,
};

struct RoleRow {
  StringLiteral call;
  StringLiteral op;
  /// -1: any.
  int operand;
  unsigned argument;
  StringLiteral keyword;
  Layout layout;
  /// Rank the argument must have; 0: any.
  unsigned rank;
  bool isBias = false;
};
} // namespace

// The calls are families: "batch_norm" is every operator whose name contains it
// (native, legit, no_training), all with the same first five arguments.
static const RoleRow kRoleRows[] = {
    {"linear", "MatMul", 1, 1, "weight", Layout::Swapped, 2},
    {"linear", "Gemm", 1, 1, "weight", Layout::GemmBSwapped, 2},
    {"linear", "Transpose", 0, 1, "weight", Layout::Same, 2},
    {"linear", "Add", -1, 2, "bias", Layout::Same, 1, true},
    {"linear", "Gemm", 2, 2, "bias", Layout::Same, 1, true},
    {"addmm", "Gemm", 1, 2, "mat2", Layout::GemmB, 2},
    {"addmm", "Gemm", 0, 1, "mat1", Layout::GemmA, 2},
    {"addmm", "MatMul", 1, 2, "mat2", Layout::Same, 2},
    {"addmm", "Transpose", 0, 2, "mat2", Layout::Same, 2},
    {"addmm", "Add", -1, 0, "", Layout::Same, 0, true},
    {"addmm", "Gemm", 2, 0, "", Layout::Same, 0, true},
    {"mm", "MatMul", 0, 0, "", Layout::Same, 2},
    {"mm", "MatMul", 1, 1, "mat2", Layout::Same, 2},
    {"mm", "Gemm", 0, 0, "", Layout::GemmA, 2},
    {"mm", "Gemm", 1, 1, "mat2", Layout::GemmB, 2},
    {"matmul", "MatMul", 0, 0, "", Layout::Same, 0},
    {"matmul", "MatMul", 1, 1, "other", Layout::Same, 0},
    {"matmul", "Gemm", 1, 1, "other", Layout::GemmB, 2},
    {"bmm", "MatMul", 0, 0, "", Layout::Same, 3},
    {"bmm", "MatMul", 1, 1, "mat2", Layout::Same, 3},
    {"embedding", "Gather", 0, 0, "weight", Layout::Same, 2},
    {"index", "GatherND", 0, 0, "", Layout::Indexed, 0},
    {"layer_norm", "LayerNormalization", 1, 2, "weight", Layout::Same, 0},
    {"layer_norm", "LayerNormalization", 2, 3, "bias", Layout::Same, 0, true},
    {"layer_norm", "Mul", -1, 2, "weight", Layout::Same, 0},
    {"layer_norm", "Add", -1, 3, "bias", Layout::Same, 0},
    {"group_norm", "GroupNormalization", 1, 2, "weight", Layout::Same, 1},
    {"group_norm", "GroupNormalization", 2, 3, "bias", Layout::Same, 1},
    {"group_norm", "Mul", -1, 2, "weight", Layout::Same, 1},
    {"group_norm", "Add", -1, 3, "bias", Layout::Same, 1},
    {"batch_norm", "BatchNormalization", 1, 1, "weight", Layout::Same, 1},
    {"batch_norm", "BatchNormalization", 2, 2, "bias", Layout::Same, 1},
    {"batch_norm", "BatchNormalization", 3, 3, "", Layout::Same, 1},
    {"batch_norm", "BatchNormalization", 4, 4, "", Layout::Same, 1},
    {"rms_norm", "RMSNormalization", 1, 2, "weight", Layout::Same, 0},
    {"rms_norm", "SimplifiedLayerNormalization", 1, 2, "weight", Layout::Same,
     0},
    {"rms_norm", "Mul", -1, 2, "weight", Layout::Same, 0},
    {"conv", "Conv", 1, 1, "weight", Layout::Same, 0},
    {"conv", "Conv", 2, 2, "bias", Layout::Same, 1, true},
    {"conv", "ConvTranspose", 1, 1, "weight", Layout::Same, 0},
    {"conv", "ConvTranspose", 2, 2, "bias", Layout::Same, 1, true},
};

/// The family of rows that a call's operator belongs to.
static StringRef familyOf(StringRef op) {
  for (StringRef name : {"batch_norm", "layer_norm", "group_norm", "rms_norm"})
    if (op.contains(name))
      return name;
  return op.starts_with("conv") ? "conv" : op;
}

bool isKnownCall(const TracedCall &call) {
  StringRef family = familyOf(call.op);
  return any_of(kRoleRows,
                [&](const RoleRow &row) { return row.call == family; });
}

SmallVector<int64_t, 4> identityPermutation(unsigned rank) {
  SmallVector<int64_t, 4> permutation(rank);
  for (unsigned i = 0; i < rank; ++i)
    permutation[i] = i;
  return permutation;
}

static bool isSet(const onnx::NodeProto &node, StringRef attribute) {
  const onnx::AttributeProto *found = findAttribute(node, attribute);
  return found && found->i() != 0;
}

static bool isSwapped(Layout layout, const onnx::NodeProto &node) {
  switch (layout) {
  case Layout::Same:
  case Layout::Indexed:
    return false;
  case Layout::Swapped:
    return true;
  case Layout::GemmA:
    return isSet(node, "transA");
  case Layout::GemmB:
    return isSet(node, "transB");
  case Layout::GemmBSwapped:
    return !isSet(node, "transB");
  }
  llvm_unreachable("no such layout");
}

/// The order of the dimensions of `x[:, i]`, `[None, %i]` of it; nothing where
/// it depends on what the indices are: masks of several dimensions are moved
/// otherwise.
static std::optional<SmallVector<int64_t, 4>>
indexedOrder(const TracedCall &call, unsigned rank) {
  const TracedArgument *indices = call.argument(1, "indices");
  StringRef text = indices ? StringRef(indices->text) : StringRef();
  if (!text.consume_front("[") || !text.consume_back("]"))
    return std::nullopt;
  SmallVector<StringRef> items;
  text.split(items, ',');
  auto isNone = [](StringRef item) { return item.trim() == "None"; };
  SmallVector<int64_t, 4> first, last;
  for (unsigned dim = 0; dim < rank; ++dim)
    (dim < items.size() && !isNone(items[dim]) ? first : last).push_back(dim);
  append_range(first, last);
  if (items.size() > rank || (!is_sorted(first) && rank > 2))
    return std::nullopt;
  return first;
}

std::optional<OperandRole> operandRole(const TracedCall &call,
                                       const onnx::NodeProto &node,
                                       unsigned operand, unsigned rank) {
  StringRef family = familyOf(call.op);
  for (const RoleRow &row : kRoleRows) {
    if (row.call != family || row.op != StringRef(node.op_type()) ||
        (row.operand >= 0 && unsigned(row.operand) != operand))
      continue;
    const TracedArgument *argument = call.argument(row.argument, row.keyword);
    if (!argument || (row.rank && row.rank != rank))
      return std::nullopt;
    OperandRole role{argument, identityPermutation(rank)};
    if (row.layout == Layout::Indexed) {
      std::optional<SmallVector<int64_t, 4>> order = indexedOrder(call, rank);
      if (!order)
        return std::nullopt;
      role.permutation = *order;
    }
    if (isSwapped(row.layout, node))
      std::swap(role.permutation[0], role.permutation[1]);
    return role;
  }
  return std::nullopt;
}

const TracedArgument *elementwiseArgument(const TracedCall &call,
                                          const onnx::NodeProto &node,
                                          unsigned operand) {
  static const std::pair<StringLiteral, StringLiteral> operators[] = {
      {"add", "Add"},     {"sub", "Sub"},     {"mul", "Mul"}, {"div", "Div"},
      {"maximum", "Max"}, {"minimum", "Min"}, {"pow", "Pow"},
  };
  if (none_of(operators, [&](const auto &each) {
        return each.first == StringRef(call.op) &&
               each.second == StringRef(node.op_type());
      }))
    return nullptr;
  const TracedArgument *alpha = call.argument(~0u, "alpha");
  if (operand == 1 && alpha && alpha->text != "1")
    return nullptr;
  return call.argument(operand, operand == 1 ? "other" : "");
}

std::optional<BiasRole> biasRole(const TracedCall &call,
                                 const onnx::NodeProto &node) {
  StringRef family = familyOf(call.op);
  StringRef op = node.op_type();
  for (const RoleRow &row : kRoleRows) {
    if (!row.isBias || row.call != family)
      continue;
    const TracedArgument *argument = call.argument(row.argument, row.keyword);
    if (!argument)
      continue;
    if (row.operand >= 0 && row.op == op)
      return BiasRole{argument, row.operand};
    // The Add itself is gone: it stood behind the product.
    if (row.operand < 0 && op == "MatMul")
      return BiasRole{argument, -1};
  }
  return std::nullopt;
}

} // namespace accel::onnxio
