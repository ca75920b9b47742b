// What machines and the links between them are said to be able to do: the file
// of `--links`, from which a step's time on them is predicted.

#ifndef ACCEL_LIB_COST_LINKS_H
#define ACCEL_LIB_COST_LINKS_H

#include "Machine.h"
#include "mlir/IR/MLIRContext.h"
#include "llvm/ADT/SmallVector.h"
#include <string>

namespace accel::cost {

/// Ranks that follow each other and what joins them: of the first level the
/// memory of a machine, of each further one the links of the units of the level
/// before (a machine's network card, a rack's way up). Its link is what a
/// message takes that goes so far up, and the bytes of each unit of the level
/// before, in each direction; of the first level what a rank reads of the
/// others' memory.
struct Level : Link {
  std::string name;
  int64_t ranks = 0; ///< Of one unit; the last level's is all there are.
};

struct Links {
  Rank rank;
  llvm::SmallVector<Level> levels; ///< From the machine outwards.
};

/// Reads
///
///     {"rank": {"flops_per_second": 9e10, "bytes_per_second": 1e10,
///               "seconds_per_command": 2e-6},
///      "levels": [{"name": "memory", "ranks": 2, "seconds": 2e-6,
///                  "bytes_per_second": 5e9},
///                 {"name": "network", "seconds": 6e-5,
///                  "bytes_per_second": 1.2e8}]}
///
/// for `ranks` ranks. Errors, at the file: not to be read, no such text,
/// another key, a number that is not above 0 (times: below 0), units of which
/// the next level's are no multiples.
mlir::FailureOr<Links> readLinks(llvm::StringRef path, int64_t ranks,
                                 mlir::MLIRContext *context);

} // namespace accel::cost

#endif // ACCEL_LIB_COST_LINKS_H
