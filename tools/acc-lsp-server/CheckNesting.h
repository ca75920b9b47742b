// What an editor sends, before MLIR's server sees it: text that nests deeper
// than the parser's stack holds is replaced by an error that says so.

#ifndef ACCEL_TOOLS_ACC_LSP_SERVER_CHECKNESTING_H
#define ACCEL_TOOLS_ACC_LSP_SERVER_CHECKNESTING_H

#include "mlir/IR/DialectRegistry.h"

/// From now on the standard input is what it was, checked. `isDelimited`:
/// messages stand between lines of `// -----`, as in tests. The dialect that it
/// registers is what errors are made of.
void checkNestingOfInput(mlir::DialectRegistry &registry, bool isDelimited);

#endif // ACCEL_TOOLS_ACC_LSP_SERVER_CHECKNESTING_H
