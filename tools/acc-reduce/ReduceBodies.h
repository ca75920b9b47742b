// A pass of acc-reduce: modules get smaller op by op.

#ifndef ACCEL_TOOLS_ACC_REDUCE_REDUCEBODIES_H
#define ACCEL_TOOLS_ACC_REDUCE_REDUCEBODIES_H

/// Registers `--reduce-bodies`: ops are taken out one by one, the last first,
/// as long as a script finds the module of interest, in whose place stands
/// something of the same type that was there before. MLIR 22's own
/// `--reduction-tree` takes symbols out of a module, and crashes in bodies, of
/// any dialect.
void registerReduceBodies();

#endif // ACCEL_TOOLS_ACC_REDUCE_REDUCEBODIES_H
