// What a parameter was of which the file holds only a folded copy: the names of
// the calls that are gone say what was done to it, and the line that uses the
// copy what was added.

#include "CallFrames.h"
#include "NodeInfo.h"
#include "OperatorKinds.h"
#include "ParameterRoles.h"
#include "RestoreFolded.h"
#include "llvm/ADT/StringExtras.h"
#include <cstring>

using namespace llvm;

namespace accel::onnxio {

namespace {
/// How many calls of each kind are gone.
struct GoneCalls {
  unsigned swaps = 0, unsqueezes = 0, views = 0, additions = 0, numbers = 0;
  bool isKnown = true;
  bool hasAlias = false; ///< what a decomposition writes for a detach

  void count(StringRef op) {
    if (op == "permute" || op == "transpose" || op == "t" || op == "numpy_t")
      ++swaps;
    else if (op == "unsqueeze")
      ++unsqueezes;
    else if (op == "view" || op == "_unsafe_view" || op == "reshape")
      ++views;
    else if (op == "add")
      ++additions;
    else if (op == "scalar_tensor_default") // a number of another type
      ++numbers;
    else if (op == "alias")
      hasAlias = true;
    else if (op != "clone" && op != "contiguous")
      isKnown = false;
  }
};
} // namespace

static GoneCalls goneCalls(const TracedProgram &program,
                           const onnx::TensorProto &folded,
                           StringRef parameter) {
  GoneCalls gone;
  gone.count(operatorOfName(folded.name()));
  for (const std::string &each : *program.foldedFrom(folded.name())) {
    if (program.target(each))
      gone.isKnown &= each == parameter;
    else if (!StringRef(each).starts_with("val_")) // a value within a call
      gone.count(operatorOfName(each));
  }
  return gone;
}

static bool addsExactly(const OnnxFile &file, const onnx::TensorProto &folded,
                        float number) {
  ArrayRef<char> data = file.values(folded);
  for (size_t at = 0; at < data.size(); at += sizeof(float)) {
    float sum;
    std::memcpy(&sum, data.data() + at, sizeof(float));
    // Volatile keeps a wider register from holding the difference.
    volatile float parameter = sum - number;
    if (parameter + number != sum)
      return false;
  }
  return folded.data_type() == onnx::TensorProto::FLOAT;
}

std::optional<FoldedParameter> undoFolds(const TracedProgram &program,
                                         const onnx::NodeProto &node,
                                         const onnx::TensorProto &folded,
                                         StringRef parameter) {
  GoneCalls gone = goneCalls(program, folded, parameter);
  if (!gone.isKnown || gone.additions > 1 || gone.swaps > 1 ||
      gone.numbers > gone.additions ||
      (gone.hasAlias && none_of(program.calls(), [](const Call &each) {
         return isComposite(each.text.op);
       })))
    return std::nullopt;
  FoldedParameter undone;
  SmallVector<int64_t, 4> shape(folded.dims().begin(), folded.dims().end());
  undone.shape = shape;
  auto isOne = [](int64_t size) { return size == 1; };
  if (gone.swaps) {
    if (shape.size() != 2 || gone.unsqueezes || gone.views || gone.additions)
      return std::nullopt;
    std::swap(undone.shape[0], undone.shape[1]);
    undone.steps.push_back({ParameterStep::Permute, {1, 0}});
    return undone;
  }
  if (gone.unsqueezes || gone.views) {
    llvm::erase_if(undone.shape, isOne);
    unsigned ones = shape.size() - undone.shape.size();
    undone.isShapeGuessed = gone.views;
    if (gone.views ? undone.shape.size() != 1 : ones != gone.unsqueezes)
      return std::nullopt;
    undone.steps.push_back({ParameterStep::Reshape, shape});
  }
  if (gone.additions) {
    std::optional<double> number = addedTo(node, parameter);
    if (!number || !addsExactly(program.file, folded, float(*number)))
      return std::nullopt;
    undone.steps.push_back({ParameterStep::Offset, {}, *number});
  }
  return undone;
}

bool isFoldedBy(const OnnxFile &file, const onnx::TensorProto &parameter,
                const onnx::TensorProto &folded,
                ArrayRef<ParameterStep> steps) {
  ArrayRef<char> from = file.values(parameter), to = file.values(folded);
  if (parameter.data_type() != folded.data_type() || from.size() != to.size())
    return false;
  double offset = 0;
  for (const ParameterStep &step : steps) {
    if (step.kind == ParameterStep::Permute)
      return holdSame(file, parameter,
                      identityPermutation(parameter.dims_size()), folded,
                      step.values);
    if (step.kind == ParameterStep::Offset)
      offset = step.number;
  }
  if (offset == 0)
    return from == to;
  for (size_t at = 0; at < from.size(); at += sizeof(float)) {
    float value, sum;
    std::memcpy(&value, from.data() + at, sizeof(float));
    std::memcpy(&sum, to.data() + at, sizeof(float));
    volatile float again = value + float(offset);
    if (again != sum)
      return false;
  }
  return folded.data_type() == onnx::TensorProto::FLOAT;
}

} // namespace accel::onnxio
