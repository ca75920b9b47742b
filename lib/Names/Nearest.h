// Which of the names that there are somebody may have meant: for messages about
// a name that there is not.

#ifndef ACCEL_LIB_NAMES_NEAREST_H
#define ACCEL_LIB_NAMES_NEAREST_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include <string>

namespace accel {

/// How far a name that was said is from one that there is, in any letter case:
/// 2 for each letter that is wrong, missing, too many, or exchanged with the
/// next one (Damerau and Levenshtein's edits). Half of it where one name is the
/// other with letters left out, since a name shortened is likelier than one
/// that is another's by accident.
unsigned nameDistance(llvm::StringRef said, llvm::StringRef legal);

/// Whether who said `said` may have meant `legal`: no more than a third of the
/// letters of the longer one is wrong, two thirds where letters are only left
/// out. A short word with another number is another thing, not a slip: fp32 is
/// not near fp16.
bool isNear(llvm::StringRef said, llvm::StringRef legal);

/// The name of `legal` that is nearest to `said`, the first of several; of
/// dotted names the last part alone counts too, so that 'lr' is near
/// 'optimizer.lr'. Empty where none is near (`isNear`).
llvm::StringRef nearestName(llvm::StringRef said,
                            llvm::ArrayRef<llvm::StringRef> legal);

/// ", the nearest is 'x'"; empty where none is near.
std::string suggestName(llvm::StringRef said,
                        llvm::ArrayRef<llvm::StringRef> legal);

/// "'a', 'b', 'c'"; of more than `most` names the first ones and ", ...".
std::string listNames(llvm::ArrayRef<llvm::StringRef> names, size_t most = 12);

} // namespace accel

#endif // ACCEL_LIB_NAMES_NEAREST_H
