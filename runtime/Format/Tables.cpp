// Looking up by name, and parts.

#include "Format/Tables.h"

#include <algorithm>

namespace accel::rt {

int64_t boundedProduct(const std::vector<int64_t> &sizes, int64_t factor) {
  // Beside a size of 0 the others count too: strides are products of them.
  __int128 product = factor;
  bool isEmpty = false;
  for (int64_t size : sizes) {
    if (!inRange(size, 0, kLimit))
      return -1;
    isEmpty |= size == 0;
    product *= std::max<int64_t>(size, 1);
    if (product >= kLimit)
      return -1;
  }
  return isEmpty ? 0 : static_cast<int64_t>(product);
}

namespace {
template <class T, class Names>
void addAll(const std::vector<T> &list, Names &names) {
  names.reserve(list.size());
  for (const T &each : list)
    names.try_emplace(each.name, &each);
}
template <class Names> auto find(const Names &names, const std::string &name) {
  auto found = names.find(name);
  return found == names.end() ? nullptr : found->second;
}
} // namespace

Tables::Tables(const Executable &executable) : executable(executable) {
  addAll(executable.sections, sections);
  states.reserve(executable.states.size());
  for (const StatePlan &state : executable.states)
    states.try_emplace(state.keptAs(), &state);
  addAll(executable.inputs, inputs);
  addAll(executable.outputs, outputs);
  addAll(executable.mesh, axes);
  for (const KernelPlan &kernel : executable.kernels)
    kernels.insert({kernel.function, kernel.signature});
}

const Section *Tables::section(const std::string &name) const {
  return find(sections, name);
}
const StatePlan *Tables::state(const std::string &name) const {
  return find(states, name);
}
const TensorPlan *Tables::input(const std::string &name) const {
  return find(inputs, name);
}
const TensorPlan *Tables::output(const std::string &name) const {
  return find(outputs, name);
}

int64_t Tables::axisSize(const std::string &name) const {
  if (name == "mb")
    return executable.microBatches;
  const Axis *axis = find(axes, name);
  return axis ? axis->size : 0;
}

bool Tables::hasKernel(const KernelPlan &kernel) const {
  return kernels.count({kernel.function, kernel.signature});
}

Status Tables::checkAxes(const std::vector<std::string> &names,
                         bool microBatch) const {
  for (size_t i = 0; i < names.size(); ++i) {
    if (!axisSize(names[i]) || (!microBatch && names[i] == "mb"))
      return Status::error("found no mesh axis " + inQuotes(names[i]));
    // Not longer than the mesh, or one of them would be there twice.
    if (i > executable.mesh.size() ||
        std::find(names.begin(), names.begin() + i, names[i]) !=
            names.begin() + i)
      return Status::error("found mesh axis " + inQuotes(names[i]) +
                           " twice in a list of axes");
  }
  return Status();
}

Status Tables::checkPart(const Part &part, const std::string &what) const {
  if (boundedProduct(part.shape, 8) < 0)
    return Status::error("expected a shape, found sizes out of range for " +
                         what);
  if (part.axes.size() != part.shape.size())
    return Status::error("expected axes for each of " +
                         std::to_string(part.shape.size()) +
                         " dimensions, found " +
                         std::to_string(part.axes.size()) + " for " + what);
  for (const auto &dimension : part.axes)
    ACCEL_RT_RETURN_IF_ERROR(checkAxes(dimension, /*microBatch=*/true));
  if (!part.interleaved)
    return Status();
  auto &[dim, sizes, by, times] = *part.interleaved;
  bool fits = inRange(dim, 0, static_cast<int64_t>(part.shape.size())) &&
              by >= 1 && !sizes.empty() && times >= 1;
  int64_t left = fits ? part.shape[static_cast<size_t>(dim)] : 0;
  fits = fits && left % times == 0;
  left = fits ? left / times : 0;
  for (int64_t size : sizes) {
    fits = fits && inRange(size, 1, left + 1) && size % by == 0;
    left -= fits ? size : 0;
  }
  if (!fits || left != 0 ||
      std::count(part.axes[dim].begin(), part.axes[dim].end(), "mb") != 0)
    return Status::error("expected parts of a dimension of " + what);
  return Status();
}

} // namespace accel::rt
