// How an op may be sharded: which dimensions move together, and what the op is
// on one rank's tensors.

#ifndef ACCEL_INTERFACES_SHARDINGRULE_TD
#define ACCEL_INTERFACES_SHARDINGRULE_TD

include "mlir/IR/OpBase.td"

def ShardingRuleOpInterface : OpInterface<"ShardingRuleOpInterface"> {
  let cppNamespace = "::accel";
  let description = [{
    An op without this interface cannot be sharded, not even replicated: passes
    refuse it by name.
  }];
  let methods = [
    InterfaceMethod<"The rule for the op's global shapes.",
      "::accel::ShardingRule", "getShardingRule">,
    InterfaceMethod<"Builds the op's local form: appends one value per result, of "
      "`types`. `operands` are one rank's pieces, as the types of the op (which "
      "still has its global types, shardings included) say. Emits an error at the "
      "op and fails if it has no local form for them.",
      "::llvm::LogicalResult", "localize",
      (ins "::mlir::OpBuilder &":$builder, "::mlir::ValueRange":$operands,
           "::mlir::TypeRange":$types,
           "::llvm::SmallVectorImpl<::mlir::Value> &":$results), [{}], [{
        return ::accel::localizeIndexFree($_op, builder, operands, types, results);
      }]>,
  ];
}

#endif
