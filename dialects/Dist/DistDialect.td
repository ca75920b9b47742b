// The dist dialect: where tensors live, and in which order tasks run.

#ifndef ACCEL_DIST_DIALECT_TD
#define ACCEL_DIST_DIALECT_TD

include "mlir/IR/OpBase.td"

def Dist_Dialect : Dialect {
  let name = "dist";
  let cppNamespace = "::accel::dist";
  let summary = "Where tensors live, and in which order tasks run";
  let description = [{
    `dist` says *where*: a `dist.mesh` names the axes that the ranks are arranged
    along, and a `#dist.sharding` in a tensor's type says which axes split which
    dimension, and over which axes the ranks hold partial results.

    The ops come in two families. On whole tensors (phase `dist`),
    `dist.constraint` asks for a sharding and `dist.reshard` is the only op that
    changes one. On one rank's tensors (phase `local`) the collectives move data
    between ranks, functions marked `dist.task` are the pieces of a step, and
    `dist.schedule` says in which order each stage runs them.

    Axes are named as Accelerate's `parallelism_config` names them:
    dp_replicate, dp_shard, cp, sp, tp, ep, pp. The axis `mb` is reserved: its
    coordinates are micro-batches, which run one after another on the same rank.
    The rank with coordinates c has the number Σ c(axis) · stride(axis), row-major
    over the other axes in the order of the mesh.
  }];
  let useDefaultAttributePrinterParser = 1;
  let hasOperationAttrVerify = 1;
  let hasRegionArgAttrVerify = 1;
  let hasRegionResultAttrVerify = 1;
}

#endif
