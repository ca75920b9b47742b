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

/// Bytes of what elements of `dtype` are combined in.
int64_t accumulatorBytes(DType dtype);

/// A part of a combination whose terms do not all lie in one machine's memory:
/// before ∘ sources[0] ∘ … ∘ after, from left to right, each where it is given.
struct Fold {
  enum Kind { None, Partial, Term };
  /// What is combined so far, in accumulators (Partial), or one term as it is.
  Kind beforeIs = None, afterIs = None;
  const void *before = nullptr, *after = nullptr;
  const void *const *sources = nullptr;
  size_t count = 0;
  /// The result is rounded to the elements' type; else it is accumulators.
  bool isLast = false;
};

/// Combines the elements [begin, end) of `layout` (B is each source). `before`,
/// `after` and the target are those elements alone, one after another.
void foldElements(const PairLayout &layout, DType dtype, Combine combine,
                  const Fold &fold, void *target, int64_t begin, int64_t end);

} // namespace accel::rt

#endif // ACCEL_RUNTIME_COMM_REDUCE_H
