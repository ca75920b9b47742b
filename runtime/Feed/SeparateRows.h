// The rows of an evaluation that make no whole batch. A program has a batch of
// one size; where its loss is a mean of what rows come to by themselves, a
// batch that is filled up with copies of one row, and one of that row alone,
// tell what the others come to.

#ifndef ACCEL_RUNTIME_FEED_SEPARATEROWS_H
#define ACCEL_RUNTIME_FEED_SEPARATEROWS_H

#include "Feed/DataFeed.h"

namespace accel::rt {

/// Why the loss of the rows that make no whole batch cannot be told from those
/// of whole batches, or with a mask: a clause; empty: it can. Looks at what
/// `rows` takes for given, in the values of inputs that come from files, and in
/// the tokens, because rows in which a loss ignores another number of labels
/// weigh differently.
Status whyNotSeparate(const SeparateRows &rows,
                      const std::vector<TensorPlan> &wanted,
                      const Inputs &files, const DataFeed &data,
                      std::string &why);

} // namespace accel::rt

#endif // ACCEL_RUNTIME_FEED_SEPARATEROWS_H
