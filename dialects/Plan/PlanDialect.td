// The plan dialect: when each command runs, and in which bytes.

#ifndef ACCEL_PLAN_DIALECT_TD
#define ACCEL_PLAN_DIALECT_TD

include "mlir/IR/OpBase.td"

def Plan_Dialect : Dialect {
  let name = "plan";
  let cppNamespace = "::accel::plan";
  let summary = "When, and in which bytes: commands over buffers at addresses";
  let description = [{
    A `plan.program` serves every rank of one stage. It declares buffers at
    fixed offsets of arenas, writes each task's commands once (`plan.body`), and
    lists which body runs when and on which micro-batch (`plan.entry`, 
    `plan.segment`, `plan.run`), what repeats once (`plan.loop`).

    An address is affine: buffer base + (micro-batch mod slots) · slot stride +
    view offset +
    Σ coordinate(axis) · axis stride, so that one text serves every rank and
    every micro-batch. Tensors are not values here: commands name views of
    buffers as attributes. A kernel's meaning stays in the module as a function
    of nn ops, which the target compiles and the reference evaluator executes.
  }];
  let dependentDialects = ["::accel::dist::DistDialect"];
  let useDefaultAttributePrinterParser = 1;
}

#endif
