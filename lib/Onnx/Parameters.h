// Parameter identity: which tensors of an ONNX file are the parameters of the
// user's program, under which names, ties and layouts. Exporters rename,
// transpose, split, merge and drop initializers; the graph signature and the
// traced calls they leave in metadata tell it back, as long as no node has been
// rewritten. So this runs on the loaded file, before import.
#ifndef ACCEL_LIB_ONNX_PARAMETERS_H
#define ACCEL_LIB_ONNX_PARAMETERS_H

#include "OnnxFile.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallVector.h"
#include <optional>

namespace llvm {
class raw_ostream;
} // namespace llvm

namespace accel::onnxio {

/// An initializer that holds a parameter's values:
/// initializer = transpose(parameter, permutation), as in numpy.
struct ParameterInitializer {
  std::string initializer;
  llvm::SmallVector<int64_t, 4> permutation;
};

/// What became of a parameter.
enum class ParameterKind {
  /// Held by initializers of its own.
  Parameter,
  /// Its initializer also stands for other parameters of equal value; its uses
  /// tell them apart.
  Merged,
  /// In the file only as what an optimizer computed from it, which is undone:
  /// its initializer = `steps` of it.
  Unfolded,
  /// All zero, and removed from the graph: see ParameterTable::restored.
  Removed,
  /// Folded into other constants (or never used): no initializer holds it,
  /// nothing can train it. What holds its value cannot always be told.
  FoldedAway,
};

/// One thing that an exporter did to a parameter before it stored the result,
/// to be done again at run time.
struct ParameterStep {
  enum Kind {
    Permute, ///< `values`: the permutation, as in numpy
    Slice,   ///< `values`: dimension, start, size
    Rows,    ///< `values`: which of dimension 0, in turn
    Reshape, ///< `values`: the shape
    Expand,  ///< `values`: the shape, of which sizes of 1 are repeated
    Scale,   ///< times `number`
    Offset,  ///< plus `number`
    Square,
    Widen, ///< from f32 to f64
  } kind;
  llvm::SmallVector<int64_t, 4> values;
  double number = 0;
};

struct Parameter {
  /// First name in the signature's order; the initializer's own name in files
  /// without a signature.
  std::string name;
  std::vector<std::string> aliases;
  /// In the user's layout. Unknown (and `hasShape` false) for some parameters
  /// that were folded away.
  llvm::SmallVector<int64_t, 4> shape;
  bool hasShape = false;
  /// onnx::TensorProto::DataType.
  int32_t dtype = 0;
  ParameterKind kind = ParameterKind::Parameter;
  /// More than one where a tied or shared weight was split; all are checked to
  /// hold equal bytes up to the permutation. The first gives the value. Of a
  /// merged parameter: the initializer it shares. Empty for Removed
  /// and FoldedAway.
  std::vector<ParameterInitializer> initializers;
  /// Of an unfolded parameter: a reshape, an addition or a product.
  std::vector<ParameterStep> steps;
  /// Whether training changes it: unless it was folded away, or a pattern says
  /// otherwise.
  bool trained = true;
  /// One sentence: how it was found.
  std::string why;
};

/// One operand that is a parameter, operand = transpose(parameter,
/// permutation), or that was computed from one by `steps` (then `permutation`
/// is the identity).
struct ParameterUse {
  unsigned parameter;
  llvm::SmallVector<int64_t, 4> permutation;
  std::vector<ParameterStep> steps = {};
};

/// A place where training the file would not be training what the user wrote.
struct Doubt {
  /// Where it shows; null: in the file as a whole.
  const onnx::NodeProto *node;
  /// The parameters that would be trained wrongly, or not at all, by name.
  std::vector<std::string> parameters;
  /// What was found, without a remedy.
  std::string message;
  enum Kind {
    /// All is well with `parameters` held constant, which --allow-folded does.
    Folded,
    /// What the traced program means is lost: an error, unless there are
    /// `parameters` and the user trains none of them.
    Meaning,
    /// Nothing tells whether it was lost: a warning.
    Possible,
  } kind;
  /// What to do about it, where it is not to export otherwise; or empty.
  std::string remedy = {};
};

/// What to do about a file that does not tell what the user wrote; of one that
/// no optimizer touched, and of any other.
inline constexpr llvm::StringLiteral kAccExportRemedy =
    "export with acc-export";
inline constexpr llvm::StringLiteral kExportRemedy =
    "export with acc-export, or with torch.onnx.export(…, dynamo=True, "
    "optimize=False)";

/// A zero bias that the exporter removed from `node`, to be put back in
/// training: as operand `operand`, which `node` lacks, or, where `operand` is
/// -1, as an addition to the node's first result (broadcast from the right).
struct RestoredOperand {
  const onnx::NodeProto *node;
  int operand;
  unsigned parameter;
};

struct ParameterTable {
  /// In the signature's order; without a signature in the file's.
  std::vector<Parameter> parameters;
  /// Initializers that are floating-point, used, and no parameter: buffers,
  /// rotary tables, masks, scalars; with the reason.
  std::vector<std::pair<std::string, std::string>> constants;
  /// Those of `constants` of which neither metadata nor name nor use tells
  /// whether they are parameters, and no pattern either.
  std::vector<std::string> undecided;
  /// Parameters that stand beside low-rank adapters, which nothing says are
  /// trained, and no pattern either: no file of torch.onnx.export keeps
  /// requires_grad. And a module that has an adapter.
  std::vector<std::string> besideAdapters;
  std::string adaptedModule;
  std::vector<RestoredOperand> restored;
  /// Uses in the main graph and its subgraphs, by node and operand number.
  llvm::DenseMap<std::pair<const onnx::NodeProto *, unsigned>, ParameterUse>
      uses;
  /// What stands between this file and its training; none of it concerns who
  /// runs it forward.
  std::vector<Doubt> doubts;
  /// The remedy of those that name none: one of the two above.
  llvm::StringRef exportRemedy = kExportRemedy;
  /// What the report adds: calls that are believed without a rule of ours.
  std::vector<std::string> remarks;
  /// What a user should hear (folding that training suffers from), one
  /// sentence each.
  std::vector<std::string> notes;

  /// The parameter that operand `operand` of `node` is, or null.
  const ParameterUse *useAt(const onnx::NodeProto &node,
                            unsigned operand) const {
    auto it = uses.find({&node, operand});
    return it == uses.end() ? nullptr : &it->second;
  }
  /// The parameter of that name or alias, or null.
  const Parameter *find(llvm::StringRef name) const;
};

/// `padding_idx`, the row of an embedding's table that is not trained, of the
/// traced call (aten.embedding, torch.nn.functional.embedding) that `node` came
/// from; nothing where there is none.
std::optional<int64_t> getPaddingIndex(const onnx::NodeProto &node);

/// Whether the node is a copy that passes no gradient: of the traced call
/// aten.detach, or marked `accel.stop_gradient` by acc-export.
bool stopsGradient(const onnx::NodeProto &node);

/// `label_smoothing` of the traced call aten.cross_entropy_loss that `node`
/// came from; 0 where there is none.
double getLabelSmoothing(const onnx::NodeProto &node);

/// What the user adds to what the file says.
struct IdentifyOptions {
  /// `--tie A=B`: two names of one parameter.
  std::vector<std::pair<std::string, std::string>> ties;
  /// `--trainable`, `--frozen`: glob patterns over names and aliases, and over
  /// initializers that would be constants; what a pattern of the first matches
  /// is a parameter.
  std::vector<std::string> trainable = {}, frozen = {};
  /// `--allow-folded`: parameters of which a use was folded are held constant.
  bool allowFolded = false;
};

/// Settles parameter identity, by the exporter's metadata where there is some
/// (rules: ParameterRoles.h, Parameters.cpp), else by name and use. Works on
/// any model, converts no operator. Fails, with a located error, where the file
/// contradicts itself (initializers claimed by one parameter that hold
/// different values), a tie names what does not exist, or a pattern matches
/// nothing.
mlir::FailureOr<ParameterTable>
identifyParameters(const OnnxFile &file, const IdentifyOptions &options = {});

/// Writes the table for people, or with `json` one array of
/// `{name, aliases, shape, initializers: [{initializer, permutation}], trained,
/// why}`.
/// There, `initializers` lists only what is the parameter's own: a merged
/// initializer is named in `why`; an unknown shape is null.
void printParameterReport(const ParameterTable &table, llvm::raw_ostream &os,
                          bool json);

} // namespace accel::onnxio

#endif // ACCEL_LIB_ONNX_PARAMETERS_H
