// What a parameter was of which the file holds only a folded copy: the names of
// the calls that are gone say what was done to it, and the line that uses the
// copy what was added, or by which number it was multiplied. From which type it
// was widened its values say.

#include "CallFrames.h"
#include "NodeInfo.h"
#include "OperatorKinds.h"
#include "ParameterRoles.h"
#include "RestoreFolded.h"
#include "llvm/ADT/APFloat.h"
#include "llvm/ADT/StringExtras.h"
#include <cmath>
#include <cstring>

using namespace llvm;

namespace accel::onnxio {

namespace {
/// How many calls of each kind are gone.
struct GoneCalls {
  unsigned swaps = 0, unsqueezes = 0, views = 0, numbers = 0, casts = 0,
           expansions = 0;
  /// Additions of a number, products, quotients: `+`, `*`, `/`.
  std::string arithmetic;
  bool isKnown = true;
  bool hasAlias = false; ///< what a decomposition writes for a detach
  bool isColumn = false; ///< a vector that a norm has made one of

  void count(StringRef op) {
    if (op == "permute" || op == "transpose" || op == "t" || op == "numpy_t")
      ++swaps;
    else if (op == "unsqueeze")
      ++unsqueezes;
    else if (op == "view" || op == "_unsafe_view" || op == "reshape")
      ++views;
    else if (op == "add" || op == "mul" || op == "div")
      arithmetic += op == "add" ? '+' : op == "mul" ? '*' : '/';
    else if (op == "_to_copy")
      ++casts;
    else if (op == "expand")
      ++expansions;
    else if (op == "scalar_tensor_default") // a number of another type
      ++numbers;
    else if (op == "alias")
      hasAlias = true;
    else if (op != "clone" && op != "contiguous")
      isKnown = false;
  }
};
} // namespace

/// Whether a value is computed within a call of `group_norm`, of whose weight
/// and bias, vectors, it makes columns.
static bool isWithinGroupNorm(const onnx::NodeProto &node, StringRef value) {
  std::optional<TracedCall> call = tracedCall(node);
  return value.starts_with("val_") && call &&
         (call->op == "group_norm" || call->op == "native_group_norm");
}

static GoneCalls goneCalls(const TracedProgram &program,
                           const onnx::NodeProto &node,
                           const onnx::TensorProto &folded,
                           StringRef parameter) {
  GoneCalls gone;
  if (isWithinGroupNorm(node, folded.name()))
    gone.isColumn = true;
  else
    gone.count(operatorOfName(folded.name()));
  for (const std::string &each : *program.foldedFrom(folded.name())) {
    if (program.target(each))
      gone.isKnown &= each == parameter;
    else if (!StringRef(each).starts_with("val_")) // a value within a call
      gone.count(operatorOfName(each));
  }
  return gone;
}

/// The step that is arithmetic with a number; nothing where it takes more than
/// one rounding.
static std::optional<ParameterStep> stepOf(const Arithmetic &arithmetic) {
  double number = arithmetic.number;
  if (arithmetic.op == '+')
    return ParameterStep{ParameterStep::Offset, {}, number};
  if (arithmetic.op == '/') {
    int exponent;
    if (std::abs(std::frexp(number, &exponent)) != 0.5)
      return std::nullopt;
    number = 1 / number;
  }
  return ParameterStep{ParameterStep::Scale, {}, number};
}

/// Whether what the step is undone to, or `parameter` if it is known, gives the
/// same bits when it is done again.
static bool isExact(const OnnxFile &file, const onnx::TensorProto &folded,
                    const ParameterStep &step,
                    const onnx::TensorProto *parameter = nullptr) {
  ArrayRef<char> data = file.values(folded);
  ArrayRef<char> known = parameter ? file.values(*parameter) : data;
  bool isSum = step.kind == ParameterStep::Offset;
  float number = float(step.number);
  if (folded.data_type() != onnx::TensorProto::FLOAT ||
      known.size() != data.size() || !std::isfinite(number) || number == 0)
    return false;
  for (size_t at = 0; at < data.size(); at += sizeof(float)) {
    float result, value;
    std::memcpy(&result, data.data() + at, sizeof(float));
    std::memcpy(&value, known.data() + at, sizeof(float));
    // Volatile keeps a wider register from holding what is not rounded.
    volatile float before = parameter ? value
                            : isSum   ? result - number
                                      : result / number;
    volatile float again = isSum ? before + number : before * number;
    // An infinite product is of any large number.
    if (again != result || !std::isfinite(result))
      return false;
  }
  return true;
}

/// Whether the tensor, of f64, holds what f32 holds, and neither f16 nor
/// bfloat16: then a parameter that was widened to it was of f32.
static bool isOfFloats(const OnnxFile &file, const onnx::TensorProto &tensor) {
  if (tensor.data_type() != onnx::TensorProto::DOUBLE)
    return false;
  bool isHalf = true, isBrain = true;
  auto holds = [](double value, const fltSemantics &type) {
    APFloat narrow(value);
    bool lossy;
    narrow.convert(type, APFloat::rmNearestTiesToEven, &lossy);
    return !lossy;
  };
  ArrayRef<char> data = file.values(tensor);
  for (size_t at = 0; at < data.size(); at += sizeof(double)) {
    double value;
    std::memcpy(&value, data.data() + at, sizeof(double));
    if (!holds(value, APFloat::IEEEsingle()))
      return false;
    isHalf = isHalf && holds(value, APFloat::IEEEhalf());
    isBrain = isBrain && holds(value, APFloat::BFloat());
  }
  return !isHalf && !isBrain;
}

/// Whether what follows each other along a dimension is equal.
static bool repeatsAlong(const OnnxFile &file, const onnx::TensorProto &tensor,
                         unsigned dim) {
  ArrayRef<char> data = file.values(tensor);
  size_t size = tensor.dims(int(dim)), outer = 1;
  for (unsigned before = 0; before < dim; ++before)
    outer *= tensor.dims(int(before));
  if (outer * size == 0)
    return false;
  size_t bytes = data.size() / (outer * size);
  for (size_t at = 0; at < outer * size; ++at)
    if (std::memcmp(data.data() + at * bytes,
                    data.data() + at / size * size * bytes, bytes) != 0)
      return false;
  return true;
}

/// A parameter that was expanded and nothing else: of sizes of 1 where its
/// copies are. Nothing where all of its elements are equal, so that this may be
/// anywhere.
static std::optional<FoldedParameter>
undoExpansion(const OnnxFile &file, const onnx::TensorProto &folded) {
  FoldedParameter undone;
  undone.shape.assign(folded.dims().begin(), folded.dims().end());
  undone.steps.push_back({ParameterStep::Expand, undone.shape});
  undone.isShapeGuessed = true;
  bool repeats = false;
  for (auto [dim, size] : enumerate(undone.shape))
    if (size > 1 && repeatsAlong(file, folded, dim)) {
      size = 1;
      repeats = true;
    }
  if (!repeats || isUniform(file, folded))
    return std::nullopt;
  return undone;
}

std::optional<FoldedParameter> undoFolds(const TracedProgram &program,
                                         const onnx::NodeProto &node,
                                         const onnx::TensorProto &folded,
                                         StringRef parameter) {
  GoneCalls gone = goneCalls(program, node, folded, parameter);
  if (!gone.isKnown || gone.arithmetic.size() > 1 || gone.swaps > 1 ||
      gone.numbers > gone.arithmetic.size() ||
      (gone.hasAlias && none_of(program.calls(), [](const Call &each) {
         return isComposite(each.text.op);
       })))
    return std::nullopt;
  if (gone.expansions) {
    if (gone.swaps || gone.unsqueezes || gone.views || gone.casts ||
        !gone.arithmetic.empty())
      return std::nullopt;
    return undoExpansion(program.file, folded);
  }
  FoldedParameter undone;
  SmallVector<int64_t, 4> shape(folded.dims().begin(), folded.dims().end());
  undone.shape = shape;
  auto isOne = [](int64_t size) { return size == 1; };
  if (gone.swaps) {
    if (shape.size() != 2 || gone.unsqueezes || gone.views || gone.casts ||
        !gone.arithmetic.empty())
      return std::nullopt;
    std::swap(undone.shape[0], undone.shape[1]);
    undone.steps.push_back({ParameterStep::Permute, {1, 0}});
    return undone;
  }
  if (gone.unsqueezes || gone.views || gone.isColumn) {
    llvm::erase_if(undone.shape, isOne);
    unsigned ones = shape.size() - undone.shape.size();
    undone.isShapeGuessed = gone.views;
    if (gone.views || gone.isColumn ? undone.shape.size() != 1
                                    : ones != gone.unsqueezes)
      return std::nullopt;
    undone.steps.push_back({ParameterStep::Reshape, shape});
  }
  if (gone.casts) {
    if (gone.casts > 1 || !gone.arithmetic.empty() ||
        !castsToDouble(node, parameter) || speaksOfDetaching(node) ||
        !isOfFloats(program.file, folded))
      return std::nullopt;
    undone.steps.push_back({ParameterStep::Widen, {}});
  }
  if (!gone.arithmetic.empty()) {
    std::optional<Arithmetic> said = arithmeticWith(node, parameter);
    std::optional<ParameterStep> step =
        said && gone.arithmetic[0] == said->op ? stepOf(*said) : std::nullopt;
    if (!step || !isExact(program.file, folded, *step))
      return std::nullopt;
    undone.steps.push_back(*step);
  }
  return undone;
}

bool isFoldedBy(const OnnxFile &file, const onnx::TensorProto &parameter,
                const onnx::TensorProto &folded,
                ArrayRef<ParameterStep> steps) {
  ArrayRef<char> from = file.values(parameter), to = file.values(folded);
  if (parameter.data_type() != folded.data_type() || from.size() != to.size())
    return false;
  const ParameterStep *arithmetic = nullptr;
  for (const ParameterStep &step : steps) {
    if (step.kind == ParameterStep::Permute)
      return holdSame(file, parameter,
                      identityPermutation(parameter.dims_size()), folded,
                      step.values);
    if (step.kind != ParameterStep::Reshape)
      arithmetic = &step;
  }
  return arithmetic ? isExact(file, folded, *arithmetic, &parameter)
                    : from == to;
}

} // namespace accel::onnxio
