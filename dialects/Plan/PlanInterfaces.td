// What every command of a plan can be asked.

#ifndef ACCEL_PLAN_INTERFACES_TD
#define ACCEL_PLAN_INTERFACES_TD

include "mlir/IR/OpBase.td"

def CommandOpInterface : OpInterface<"CommandOpInterface"> {
  let cppNamespace = "::accel::plan";
  let description = [{
    A command: an op that the runtime executes. Its views say which bytes it
    touches, which is all that ordering, allocation and verification need.
  }];
  let methods = [
    InterfaceMethod<"Views that the command reads.",
      "::llvm::SmallVector<::accel::plan::ViewAttr>", "getReads">,
    InterfaceMethod<"Views that the command writes. A view that is both read and "
      "written in place is in both lists.",
      "::llvm::SmallVector<::accel::plan::ViewAttr>", "getWrites">,
    InterfaceMethod<"The stream it is queued on: commands of one stream run one "
      "after another.", "::llvm::StringRef", "getStreamName">
  ];
}

#endif
