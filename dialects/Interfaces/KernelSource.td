// How an op takes part in generated kernels: which ops may be fused into one
// row-group kernel, and which need no code because their result is a view.

#ifndef ACCEL_INTERFACES_KERNELSOURCE_TD
#define ACCEL_INTERFACES_KERNELSOURCE_TD

include "mlir/IR/OpBase.td"

def KernelSourceOpInterface : OpInterface<"KernelSourceOpInterface"> {
  let cppNamespace = "::accel";
  let description = [{
    An op that can be compiled into a generated kernel. A kernel is a function
    (pointers…, row_begin, row_end): its results are cut, in row-major order,
    into the same number of rows, and each row is computed from its own row of
    the row-local operands and from anything of the others. What the interface
    says does not depend on the target; how a target emits an op is its own
    business. Ops without the interface (matmul, attention, collectives) are
    commands of their own.
  }];
  let methods = [
    InterfaceMethod<"What kind of loop the op needs.",
      "::accel::KernelRole", "getKernelRole">,
    InterfaceMethod<"Whether the elements of the result's row r depend, of this "
      "operand, on elements of its row r only, if result and operand are both cut "
      "in row-major order into `rows` rows of equal size. False if they cannot be.",
      "bool", "isRowLocal", (ins "unsigned":$operand, "int64_t":$rows)>,
    InterfaceMethod<"Of a RowReduction: whether it may be a column reduction, each "
      "element of its result a row of its own, if there are `rows` of them: it "
      "then reads all rows of its operand side by side.",
      "bool", "reducesColumns", (ins "int64_t":$rows), [{}], [{ return false; }]>,
    InterfaceMethod<"Of a RowReduction into `rows` rows: whether it has read all "
      "that it reads of a row of this operand before the first element of that row "
      "of its result is there, so that the result may take the operand's place.",
      "bool", "readsRowFirst", (ins "unsigned":$operand, "int64_t":$rows), [{}],
      [{ return false; }]>,
    InterfaceMethod<"Whether computing an element a second time costs no more "
      "than storing it and reading it back.",
      "bool", "isCheap", (ins), [{}], [{ return true; }]>,
    InterfaceMethod<"Turns the view of operand 0 into the view of the result, if "
      "the result is nothing but operand 0 read in another way; else leaves it "
      "alone and returns failure.",
      "::llvm::LogicalResult", "applyToView", (ins "::accel::StridedView &":$view),
      [{}], [{ return ::llvm::failure(); }]>,
  ];
}

#endif
