// Collects who claims which initializer, and turns the claims into a table.
// Shared by identification by metadata and by name. Private to lib/Onnx.
#ifndef ACCEL_LIB_ONNX_PARAMETERBUILDER_H
#define ACCEL_LIB_ONNX_PARAMETERBUILDER_H

#include "Parameters.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringSet.h"

namespace accel::onnxio {

/// A place where a node, of the main graph or a subgraph, reads an initializer
/// of the main graph.
struct InitializerUse {
  const onnx::NodeProto *node;
  unsigned operand;
  const onnx::TensorProto *tensor;
};

/// All of them, in the order of the nodes.
std::vector<InitializerUse> initializerUses(const OnnxFile &file);

bool isFloatTensor(const onnx::TensorProto &tensor);

bool isSingleElement(const onnx::TensorProto &tensor);

/// As `[2, 3]`.
std::string printShape(llvm::ArrayRef<int64_t> shape);

/// True when all elements have the same bytes.
bool isUniform(const OnnxFile &file, const onnx::TensorProto &tensor);

/// True when both tensors hold the same parameter, `a` = transpose(p, pa) and
/// `b` = transpose(p, pb): same type, shape and bytes.
bool holdSame(const OnnxFile &file, const onnx::TensorProto &a,
              llvm::ArrayRef<int64_t> pa, const onnx::TensorProto &b,
              llvm::ArrayRef<int64_t> pb);

/// A parameter of which the file holds only what was computed from it.
struct FoldedParameter {
  llvm::SmallVector<int64_t, 4> shape;
  /// From the parameter to what is in the file: a transposition of a matrix, or
  /// a reshape and arithmetic with a number.
  std::vector<ParameterStep> steps;
  /// Whether names leave another shape possible.
  bool isShapeGuessed = false;
};

class ParameterBuilder {
public:
  explicit ParameterBuilder(const OnnxFile &file) : file(file) {}

  unsigned add(llvm::StringRef name);
  unsigned size() const { return drafts.size(); }
  llvm::StringRef nameOf(unsigned parameter) const {
    return drafts[parameter].name;
  }
  /// Calls `visit` with its name and those tied to it.
  void forEachName(unsigned parameter,
                   llvm::function_ref<void(llvm::StringRef)> visit) const {
    visit(drafts[parameter].name);
    for (const std::string &alias : drafts[parameter].aliases)
      visit(alias);
  }
  /// The parameter of that name or alias.
  std::optional<unsigned> find(llvm::StringRef name) const;

  /// The operand of `use` is transpose(parameter, permutation).
  void claim(unsigned parameter, const InitializerUse &use,
             llvm::ArrayRef<int64_t> permutation, std::string why);
  /// The operand of `use` was computed from the parameter by `steps`.
  void derive(unsigned parameter, const InitializerUse &use,
              std::vector<ParameterStep> steps);
  /// The operand of `use` was computed from the parameter, of which the file
  /// holds nothing else. False where it holds something else.
  bool unfold(unsigned parameter, const InitializerUse &use,
              const FoldedParameter &undone, std::string why);
  bool isClaimed(unsigned parameter) const {
    return !drafts[parameter].claims.empty() || drafts[parameter].folded;
  }
  /// An operand that is the parameter, transposed; null where there is none.
  const InitializerUse *
  firstClaim(unsigned parameter,
             llvm::SmallVectorImpl<int64_t> &permutation) const;
  /// Every use that a parameter claims, as it is or derived from it.
  void
  forEachClaim(unsigned parameter,
               llvm::function_ref<void(const InitializerUse &)> visit) const;

  /// `a` and `b` are one; the earlier one's name stays. Returns its number.
  unsigned tie(unsigned a, unsigned b, std::string why);
  /// The parameter that `parameter` was tied into, or itself.
  unsigned representative(unsigned parameter) const;

  /// A zero bias that was removed.
  void restore(unsigned parameter, const onnx::NodeProto &node, int operand,
               llvm::ArrayRef<int64_t> shape, int32_t dtype, std::string why);
  /// Every node that lacks a bias which was removed, with the bias.
  void forEachRestored(
      llvm::function_ref<void(const onnx::NodeProto &, unsigned)> visit) const;
  /// Not in the table at all.
  void omit(unsigned parameter) { drafts[parameter].omitted = true; }

  /// The table, without constants and notes. Fails where initializers of one
  /// parameter differ, with `remedy`, what the user can do.
  mlir::FailureOr<ParameterTable> finish(llvm::StringRef remedy);

private:
  struct Claim {
    InitializerUse use;
    llvm::SmallVector<int64_t, 4> permutation;
  };
  struct Derived {
    InitializerUse use;
    std::vector<ParameterStep> steps;
  };
  struct Draft {
    std::string name;
    std::vector<std::string> aliases;
    std::vector<Claim> claims;
    std::vector<Derived> derived;
    /// What is in the file in the parameter's place, and how it was made.
    const onnx::TensorProto *folded = nullptr;
    FoldedParameter undone;
    std::string why;
    int tiedTo = -1;
    bool omitted = false;
    bool removed = false;
    llvm::SmallVector<int64_t, 4> removedShape;
    int32_t removedType = 0;
  };
  struct Restored {
    const onnx::NodeProto *node;
    int operand;
    unsigned parameter;
  };
  mlir::LogicalResult collectInitializers(const Draft &draft,
                                          llvm::StringRef remedy,
                                          Parameter &into);

  /// What --original-weights says of a draft, by any of its names, or null.
  const onnx::TensorProto *findOriginal(const Draft &draft) const;

  const OnnxFile &file;
  std::vector<Draft> drafts;
  llvm::StringMap<unsigned> byName;
  std::vector<Restored> restored;
};

class TracedProgram;

/// Identification by the exporter's metadata.
void identifyByCall(const TracedProgram &program, ParameterBuilder &builder,
                    std::vector<std::string> &notes);

/// Identification by name and use, for files without a graph signature.
mlir::LogicalResult identifyByName(const OnnxFile &file,
                                   ParameterBuilder &builder,
                                   std::vector<std::string> &notes);

} // namespace accel::onnxio

#endif // ACCEL_LIB_ONNX_PARAMETERBUILDER_H
