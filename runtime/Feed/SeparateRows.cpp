// Reads what must be equal, and looks for what must not be there.

#include "Feed/SeparateRows.h"

#include "Feed/InputOutput.h"

#include <algorithm>
#include <cstring>

namespace accel::rt {
namespace {

/// Whether all slices of a tensor along `dim` have the same bytes.
Status areRowsEqual(const TensorRange &range, size_t dim, bool &equal) {
  View view;
  view.dtype = range.dtype;
  view.shape = range.shape;
  view.strides = rowMajorStrides(range.shape);
  Part part{range.shape, {}};
  part.axes.resize(range.shape.size());
  size_t element = static_cast<size_t>(dtypeBytes(range.dtype));
  std::vector<char> bytes(static_cast<size_t>(numElements(range.shape)) *
                          element);
  ACCEL_RT_RETURN_IF_ERROR(
      PieceMover(range, part, view, {}).read(bytes.data(), 0));
  size_t row = static_cast<size_t>(view.strides[dim]) * element,
         rows = static_cast<size_t>(range.shape[dim]);
  equal = true;
  for (size_t at = 0; row > 0 && at < bytes.size(); at += row * rows)
    for (size_t i = 1; i < rows; ++i)
      equal &= std::memcmp(&bytes[at], &bytes[at + i * row], row) == 0;
  return Status();
}

} // namespace

Status whyNotSeparate(const SeparateRows &rows,
                      const std::vector<TensorPlan> &wanted,
                      const Inputs &files, const DataFeed &data,
                      std::string &why) {
  why.clear();
  auto isRow = [&](const std::string &name) {
    return std::find(rows.inputs.begin(), rows.inputs.end(), name) !=
           rows.inputs.end();
  };
  std::vector<EqualRows> equal = rows.equal;
  for (const TensorPlan &input : wanted) {
    if (data.feeds(input.name) && !isRow(input.name)) {
      why = "the loss depends on the place in the batch of what input " +
            inQuotes(input.name) + " gets";
      return Status();
    }
    if (!data.feeds(input.name) && isRow(input.name))
      equal.push_back({input.name, input.batchDim.value_or(0)});
  }
  for (const EqualRows &each : equal) {
    const TensorRange *range = files.find(each.input);
    bool same = true;
    if (range)
      ACCEL_RT_RETURN_IF_ERROR(
          areRowsEqual(*range, static_cast<size_t>(each.dim), same));
    if (!same) {
      why = "the file of input " + inQuotes(each.input) +
            " has other values for each row of a batch";
      return Status();
    }
  }
  int64_t found = 0;
  bool isFound = false;
  ACCEL_RT_RETURN_IF_ERROR(data.findAny(rows.ignored, isFound, found));
  if (isFound)
    why = "there are tokens " + std::to_string(found) +
          ", which the loss does not count, so that rows weigh differently";
  return Status();
}

} // namespace accel::rt
