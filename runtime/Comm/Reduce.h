// Combining the elements of several ranks in a fixed order.

#ifndef ACCEL_RUNTIME_COMM_REDUCE_H
#define ACCEL_RUNTIME_COMM_REDUCE_H

#include "Format/Layout.h"

namespace accel::rt {

enum class Combine { Sum, Max, Min };

/// "sum", "max", "min"; nullopt for another name.
std::optional<Combine> combineFromName(const std::string &name);

/// Whether elements of `dtype` can be combined.
bool canReduce(DType dtype);

/// target[i] = sources[0][i] ∘ sources[1][i] ∘ … for the elements [begin, end)
/// of `layout` (A is the target, B each source), from left to right; 16-bit
/// floats are combined in f32 and rounded once. The target may be one of the
/// sources.
void reduceElements(const PairLayout &layout, DType dtype, Combine combine,
                    void *target, const void *const *sources, size_t count,
                    int64_t begin, int64_t end);

} // namespace accel::rt

#endif // ACCEL_RUNTIME_COMM_REDUCE_H
