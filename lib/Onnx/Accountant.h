// Who checks that training a file is training what the user wrote: what the
// parts of the check share. Private to AccountForCalls.cpp,
// AccountForGoneCalls.cpp.
#ifndef ACCEL_LIB_ONNX_ACCOUNTANT_H
#define ACCEL_LIB_ONNX_ACCOUNTANT_H

#include "ParameterDependence.h"

namespace accel::onnxio {

class Accountant {
public:
  Accountant(const TracedProgram &program, const ParameterBuilder &builder,
             std::vector<Doubt> &doubts)
      : program(program), file(program.file), builder(builder), doubts(doubts),
        dependence(program, builder) {}
  void run();

private:
  /// An argument, or an output, of which the call that made it is gone.
  struct Gone {
    /// Null: it is an output.
    const Call *call;
    const onnx::NodeProto &node;
    llvm::StringRef value;
    /// Its operator, by its name.
    llvm::StringRef op;
    /// The beginning of messages about it.
    std::string what;
    /// The ONNX values that may be in its place.
    llvm::SmallVector<llvm::StringRef> standing;
  };

  void checkInitializer(const InitializerUse &use);
  void checkParameters(const Call &call);
  void checkGone(const Call &call);
  bool checkStopped(const Gone &gone);
  bool checkDraws(const Gone &gone);
  bool checkNeutral(const Gone &gone);
  bool checkMerged(const Gone &gone);
  bool checkCopied(const Gone &gone);
  bool checkDropped(const Gone &gone);
  void checkConstant(const Gone &gone);
  void check(const Gone &gone);
  void warnOfDropped();
  void checkOutputs();
  bool isExplained(const Call &call, llvm::StringRef gone) const;
  llvm::SmallVector<llvm::StringRef> unmatched(const Call &call) const;
  bool isMeantBy(const Call &call, const InitializerUse &use) const;
  bool isMerged(unsigned parameter) const;
  bool hasLostUser(llvm::StringRef value) const;
  bool isSharedStep(const Call &from, llvm::StringRef value,
                    const Call &call) const;
  bool isOwnedByOther(const Gone &gone, llvm::StringRef operand) const;
  const Call *makerOf(llvm::StringRef value) const;
  llvm::SmallVector<llvm::StringRef> standing(const Call &call,
                                              llvm::StringRef gone) const;
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
  /// Whether operators were decomposed before the export: `detach` to `alias`.
  bool isDecomposed = false;
  /// What the exporter dropped and no rule explains: copies, views, factors.
  std::vector<std::string> dropped;
  const onnx::NodeProto *firstDropped = nullptr;
  /// The value that is gone for which each operand of no call stood first.
  llvm::StringMap<std::string> stoodFor;
  /// How many of the calls that are there take each value.
  llvm::StringMap<unsigned> usersLeft;
  /// How many parameters each initializer stands for.
  llvm::StringMap<llvm::SmallVector<unsigned>> owners;
};

} // namespace accel::onnxio

#endif // ACCEL_LIB_ONNX_ACCOUNTANT_H
