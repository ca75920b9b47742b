// Which parameters go into a value of the graph, by the claims of its operands.
// Private to lib/Onnx.
#ifndef ACCEL_LIB_ONNX_PARAMETERDEPENDENCE_H
#define ACCEL_LIB_ONNX_PARAMETERDEPENDENCE_H

#include "ParameterBuilder.h"
#include "TracedProgram.h"
#include "llvm/ADT/DenseSet.h"

namespace accel::onnxio {

class ParameterDependence {
public:
  /// Requires that `builder` holds all claims and ties; both must outlive this.
  ParameterDependence(const TracedProgram &program,
                      const ParameterBuilder &builder);

  /// Whether a parameter claims that operand.
  bool isClaimed(const onnx::NodeProto &node, unsigned operand) const {
    return claims.count({&node, operand});
  }
  /// The parameters that go into the call's nodes, by name.
  std::vector<std::string> of(const Call &call) const;
  /// The parameters that go into the ONNX value, by name.
  std::vector<std::string> of(llvm::StringRef value) const;
  /// Whether any goes into the ONNX value.
  bool reaches(llvm::StringRef value) const;

private:
  std::vector<std::string>
  collect(llvm::ArrayRef<const onnx::NodeProto *> nodes) const;

  const TracedProgram &program;
  const ParameterBuilder &builder;
  llvm::DenseMap<std::pair<const onnx::NodeProto *, unsigned>, unsigned> claims;
  /// The nodes that a parameter goes into.
  llvm::DenseSet<const onnx::NodeProto *> reached;
};

} // namespace accel::onnxio

#endif // ACCEL_LIB_ONNX_PARAMETERDEPENDENCE_H
