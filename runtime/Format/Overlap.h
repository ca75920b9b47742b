// Whether two views of a command lie in the same bytes, element for element,
// and which of a command's views may.

#ifndef ACCEL_RUNTIME_FORMAT_OVERLAP_H
#define ACCEL_RUNTIME_FORMAT_OVERLAP_H

#include "accel-rt/PlanFormat.h"

namespace accel::rt::format {

/// Whether an element of `a`, whose first byte is `aBegin`, and one of `b` have
/// a byte in common. Of views that are woven into each other in too many ways
/// to look at, the answer is yes.
bool shareBytes(int64_t aBegin, const View &a, int64_t bBegin, const View &b);

/// Whether a command may find what it reads through `read` in bytes that it
/// writes through `written`; `together`: both begin at the same byte. Code of
/// kernels is compiled for results in place, and for no others
/// (kernelSignature); a sum over ranks may take the place of a rank's term, and
/// what a rank gives to a gather may lie where it belongs. Requires the views
/// to be the command's own.
bool mayShareBytes(const Command &command, const View &read,
                   const View &written, bool together);

} // namespace accel::rt::format

#endif // ACCEL_RUNTIME_FORMAT_OVERLAP_H
