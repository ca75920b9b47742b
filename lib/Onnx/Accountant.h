// Who checks that training a file is training what the user wrote: what the
// parts of the check share. Private to AccountForCalls.cpp,
// AccountForGoneCalls.cpp.
#ifndef ACCEL_LIB_ONNX_ACCOUNTANT_H
#define ACCEL_LIB_ONNX_ACCOUNTANT_H

#include "ParameterDependence.h"

namespace accel::onnxio {

/// Operators that make a tensor of nothing but sizes and numbers, or of which
/// only the shape or type of an argument matters.
bool makesConstant(llvm::StringRef op);

class Accountant {
public:
  Accountant(const TracedProgram &program, const ParameterBuilder &builder,
             std::vector<Doubt> &doubts)
      : program(program), file(program.file), builder(builder), doubts(doubts),
        dependence(program, builder) {}
  void run();

private:
  void checkInitializer(const InitializerUse &use);
  void checkParameters(const Call &call);
  void checkGone(const Call &call);
  void checkOutputs();
  bool isExplained(const Call &call, llvm::StringRef gone) const;
  llvm::SmallVector<llvm::StringRef> unmatched(const Call &call) const;
  bool isMeantBy(const Call &call, const InitializerUse &use) const;
  bool isMerged(unsigned parameter) const;
  bool hasLostUser(llvm::StringRef value) const;
  bool findDifferences() const;
  std::string mergedWith(const Call &call, llvm::StringRef gone) const;
  std::optional<unsigned> parameterOf(llvm::StringRef placeholder) const;
  std::string unitScalar(llvm::StringRef op) const;
  void doubt(const onnx::NodeProto &node, std::vector<std::string> parameters,
             std::string message, Doubt::Kind kind = Doubt::Folded) {
    doubts.push_back({&node, std::move(parameters), std::move(message), kind});
  }

  const TracedProgram &program;
  const OnnxFile &file;
  const ParameterBuilder &builder;
  std::vector<Doubt> &doubts;
  ParameterDependence dependence;
  /// Parameters that each call's nodes read, or that were put back there.
  llvm::DenseMap<const Call *, llvm::SmallVector<unsigned>> readBy;
  /// Whether equal nodes may have come from calls that differ in training.
  bool mayDiffer = false;
  /// How many parameters each initializer stands for.
  llvm::StringMap<llvm::SmallVector<unsigned>> owners;
};

} // namespace accel::onnxio

#endif // ACCEL_LIB_ONNX_ACCOUNTANT_H
