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
    InterfaceMethod<"Calls `visit` on every view that the command names, in the order "
      "of its arguments.", "void", "forEachView",
      (ins "::llvm::function_ref<void(::accel::plan::ViewAttr, ::accel::plan::Access)>":$visit)>,
    InterfaceMethod<"The stream it is queued on: commands of one stream run one "
      "after another.", "::llvm::StringRef", "getStreamName">
  ];
  let extraSharedClassDeclaration = [{
    /// Views that the command reads.
    ::llvm::SmallVector<::accel::plan::ViewAttr> getReads() {
      return ::accel::plan::detail::selectViews($_op, ::accel::plan::Access::Read);
    }
    /// Views that the command writes. A view that is both read and written in
    /// place is in both lists.
    ::llvm::SmallVector<::accel::plan::ViewAttr> getWrites() {
      return ::accel::plan::detail::selectViews($_op, ::accel::plan::Access::Write);
    }
  }];
}

#endif
