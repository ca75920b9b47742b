// Checks the structs of an executable before anything acts on them: a file
// whose numbers were changed (and whose hash was made to fit) is refused here,
// so that the runtime can trust every index and address.

#include "Format/Views.h"

#include <algorithm>
#include <set>

namespace accel::rt {
namespace {

/// Sizes and offsets above this are refused, which keeps sums from overflowing.
constexpr int64_t kLimit = int64_t(1) << 56;
constexpr int64_t kMaxRanks = 4096;
constexpr int64_t kMaxMicroBatches = 1 << 20;

/// As enum StateRole of the nn dialect.
constexpr const char *kRoles[] = {"parameter", "moment", "accumulator",
                                  "counter", "buffer"};

bool inRange(int64_t value, int64_t low, int64_t end) {
  return value >= low && value < end;
}

/// Product of `sizes` · `factor`; -1 where it leaves the limit.
int64_t boundedProduct(const std::vector<int64_t> &sizes, int64_t factor) {
  __int128 product = factor;
  for (int64_t size : sizes) {
    if (!inRange(size, 0, kLimit))
      return -1;
    product *= size;
    if (product >= kLimit)
      return -1;
  }
  return static_cast<int64_t>(product);
}

class Validator {
public:
  explicit Validator(const Executable &executable) : executable(executable) {}

  Status run() {
    ACCEL_RT_RETURN_IF_ERROR(checkMesh());
    std::set<std::string> names;
    for (const Section &section : executable.sections)
      if (!names.insert(section.name).second)
        return Status::error("found section " + inQuotes(section.name) +
                             " twice");
    for (const StatePlan &state : executable.states)
      ACCEL_RT_RETURN_IF_ERROR(checkState(state));
    ACCEL_RT_RETURN_IF_ERROR(checkStateNames());
    for (const auto *list : {&executable.inputs, &executable.outputs})
      for (const TensorPlan &tensor : *list)
        ACCEL_RT_RETURN_IF_ERROR(
            checkPart(tensor.part, "input or output " + inQuotes(tensor.name)));
    if (executable.programs.empty())
      return Status::error("expected at least one program, found none");
    if (executable.kind != "forward" && executable.kind != "train")
      return Status::error("expected a program of kind 'forward' or 'train', "
                           "found " +
                           inQuotes(executable.kind));
    for (const Program &program : executable.programs)
      ACCEL_RT_RETURN_IF_ERROR(checkProgram(program));
    return executable.isTraining() ? checkReports() : Status();
  }

private:
  Status checkMesh() {
    int64_t ranks = 1;
    std::set<std::string> names;
    for (const Axis &axis : executable.mesh) {
      if (!names.insert(axis.name).second)
        return Status::error("found mesh axis " + inQuotes(axis.name) +
                             " twice");
      if (!inRange(axis.size, 1, kMaxRanks + 1) ||
          (ranks *= axis.size) > kMaxRanks)
        return Status::error("expected a mesh of 1 to " +
                             std::to_string(kMaxRanks) + " ranks");
      if (axis.name == "mb")
        return Status::error("expected a mesh without the axis 'mb'");
    }
    if (!inRange(executable.microBatches, 1, kMaxMicroBatches + 1))
      return Status::error("expected 1 to " + std::to_string(kMaxMicroBatches) +
                           " micro-batches, found " +
                           std::to_string(executable.microBatches));
    return Status();
  }

  /// 0 for an axis that the mesh lacks.
  int64_t axisSize(const std::string &name) {
    if (name == "mb")
      return executable.microBatches;
    for (const Axis &axis : executable.mesh)
      if (axis.name == name)
        return axis.size;
    return 0;
  }

  Status checkAxes(const std::vector<std::string> &axes, bool microBatch) {
    for (const std::string &axis : axes)
      if (!axisSize(axis) || (!microBatch && axis == "mb"))
        return Status::error("found no mesh axis " + inQuotes(axis));
    return Status();
  }

  Status checkPart(const Part &part, const std::string &what) {
    if (boundedProduct(part.shape, 8) < 0)
      return Status::error("expected a shape, found sizes out of range for " +
                           what);
    if (part.axes.size() != part.shape.size())
      return Status::error("expected axes for each of " +
                           std::to_string(part.shape.size()) +
                           " dimensions, found " +
                           std::to_string(part.axes.size()) + " for " + what);
    for (const auto &axes : part.axes)
      ACCEL_RT_RETURN_IF_ERROR(checkAxes(axes, /*microBatch=*/true));
    return Status();
  }

  const Section *findSection(const std::string &name) {
    for (const Section &section : executable.sections)
      if (section.name == name)
        return &section;
    return nullptr;
  }

  /// Whether a path is one that the compiler writes: relative, up first and
  /// then down. (Weights lie where the model does, which may be another
  /// folder.)
  static bool isPlainPath(const std::string &path) {
    bool down = false;
    for (size_t begin = 0; begin <= path.size();) {
      size_t end = std::min(path.find('/', begin), path.size());
      std::string part = path.substr(begin, end - begin);
      if (part.empty() || part == "." || (part == ".." && down) ||
          part.find('\0') != std::string::npos)
        return false;
      down |= part != "..";
      begin = end + 1;
    }
    return down;
  }

  Status checkState(const StatePlan &state) {
    std::string what = "state " + inQuotes(state.name);
    const FirstValue &first = state.first;
    int64_t bytes = boundedProduct(state.shape, dtypeBytes(state.dtype));
    if (bytes < 0)
      return Status::error("expected a shape, found sizes out of range for " +
                           what);
    if (std::find(std::begin(kRoles), std::end(kRoles), state.role) ==
        std::end(kRoles))
      return Status::error("expected the role of a state, found " +
                           inQuotes(state.role) + " for " + what);
    if (!state.logicalShape.empty()) {
      bool within = state.logicalShape.size() == state.shape.size();
      for (size_t i = 0; within && i < state.shape.size(); ++i)
        within = inRange(state.logicalShape[i], 0, state.shape[i] + 1);
      if (!within)
        return Status::error("expected a logical shape within the shape of " +
                             what);
      bytes = boundedProduct(state.logicalShape, dtypeBytes(state.dtype));
    }
    if (!state.axes.empty())
      ACCEL_RT_RETURN_IF_ERROR(checkPart({state.shape, state.axes}, what));
    for (size_t i = 0; i < state.axes.size(); ++i) {
      int64_t pieces = 1;
      for (const std::string &axis : state.axes[i])
        pieces *= axisSize(axis);
      if (state.shape[i] % pieces)
        return Status::error("expected axes that divide dimension " +
                             std::to_string(i) + " of " + what + ", found " +
                             std::to_string(pieces) + " pieces");
    }
    if (!first.path.empty() + !first.section.empty() + !first.fill.empty() != 1)
      return Status::error("expected a file, a section or a fill for " + what);
    if (!first.fill.empty()) {
      bool fits =
          first.fill.size() == static_cast<size_t>(dtypeBytes(state.dtype)) &&
          !first.bytes && !first.stored;
      for (int64_t byte : first.fill)
        fits &= inRange(byte, 0, 256);
      return fits ? Status()
                  : Status::error("expected a fill of one element for " + what);
    }
    if (first.stored) {
      if (*first.stored != DType::F32 || state.dtype != DType::F64)
        return Status::error("expected a conversion of f32 to f64, found one "
                             "of " +
                             std::string(dtypeName(*first.stored)) + " to " +
                             dtypeName(state.dtype) + " for " + what);
      bytes = boundedProduct(state.valueShape(), dtypeBytes(*first.stored));
    }
    if (first.bytes != static_cast<uint64_t>(bytes))
      return Status::error("expected " + std::to_string(bytes) +
                           " bytes of first value, found " +
                           std::to_string(first.bytes) + " for " + what);
    if (!first.path.empty() &&
        (!isPlainPath(first.path) || first.offset > kLimit))
      return Status::error("expected a relative path without detours, found " +
                           inQuotes(first.path) + " for " + what);
    if (!first.section.empty()) {
      const Section *section = findSection(first.section);
      if (!section || first.offset > section->bytes ||
          first.bytes > section->bytes - first.offset)
        return Status::error("expected a range of a section for " + what);
    }
    if (first.permutation.empty())
      return Status();
    std::vector<int64_t> sorted = first.permutation;
    std::sort(sorted.begin(), sorted.end());
    for (size_t i = 0; i < sorted.size(); ++i)
      if (sorted[i] != static_cast<int64_t>(i) ||
          sorted.size() != state.shape.size())
        return Status::error("expected a permutation for " + what);
    return Status();
  }

  /// A training step says how it went.
  Status checkReports() {
    for (const char *name : kStepReports) {
      auto is = [&](const TensorPlan &tensor) { return tensor.name == name; };
      auto found = std::find_if(executable.outputs.begin(),
                                executable.outputs.end(), is);
      if (found == executable.outputs.end() ||
          boundedProduct(found->part.shape, 1) != 1 ||
          (found->dtype != DType::F32 && found->dtype != DType::F64))
        return Status::error("expected an output " + inQuotes(name) +
                             ", a number of type f32 or f64");
    }
    return Status();
  }

  /// Every name and alias stands for one state: saved weights go by them.
  Status checkStateNames() {
    std::set<std::string> names;
    auto add = [&](const std::string &name) {
      return names.insert(name).second
                 ? Status()
                 : Status::error("found two states called " + inQuotes(name));
    };
    for (const StatePlan &state : executable.states) {
      ACCEL_RT_RETURN_IF_ERROR(add(state.name));
      for (const std::string &alias : state.aliases)
        ACCEL_RT_RETURN_IF_ERROR(add(alias));
    }
    for (const FoldedParameter &folded : executable.folded) {
      ACCEL_RT_RETURN_IF_ERROR(add(folded.name));
      if (folded.shape && boundedProduct(*folded.shape, 8) < 0)
        return Status::error("expected a shape, found sizes out of range for " +
                             inQuotes(folded.name));
    }
    return Status();
  }

  Status checkProgram(const Program &program) {
    std::set<std::string> spaces;
    for (const ArenaPlan &arena : program.arenas) {
      if (!spaces.insert(arena.space).second)
        return Status::error("found two arenas of space " +
                             inQuotes(arena.space));
      if (!inRange(arena.bytes, 0, kLimit) ||
          !inRange(arena.alignment, 1, 1 << 22) ||
          !inRange(arena.reserve, 0, kLimit))
        return Status::error("found an arena of impossible size");
    }
    for (const BufferPlan &buffer : program.buffers)
      ACCEL_RT_RETURN_IF_ERROR(checkBuffer(program, buffer));
    for (const Body &body : program.bodies)
      for (const Command &command : body.commands)
        if (Status status = checkCommand(program, body, command); !status.ok())
          return Status::error(status.message() + " in a " +
                               commandKind(command) + " for node " +
                               inQuotes(command.node));
    for (const Entry &entry : program.entries)
      for (const Segment &segment : entry.segments)
        for (const Run &run : segment.runs)
          ACCEL_RT_RETURN_IF_ERROR(checkRun(program, run));
    auto isStep = [](const Entry &entry) { return entry.name == "step"; };
    if (executable.isTraining() &&
        std::none_of(program.entries.begin(), program.entries.end(), isStep))
      return Status::error("expected an entry 'step' in program " +
                           inQuotes(program.name));
    return Status();
  }

  Status checkBuffer(const Program &program, const BufferPlan &buffer) {
    std::string what = "buffer " + inQuotes(buffer.name);
    for (const ArenaPlan &arena : program.arenas) {
      if (arena.space != buffer.space)
        continue;
      if (!inRange(buffer.offset, 0, kLimit) ||
          !inRange(buffer.bytes, 0, kLimit) || buffer.slots < 1 ||
          buffer.slots > kLimit || buffer.slotStride < buffer.bytes ||
          buffer.slotStride > kLimit ||
          static_cast<__int128>(buffer.slots - 1) * buffer.slotStride +
                  buffer.offset + buffer.bytes >
              arena.bytes)
        return Status::error("expected " + what + " within the " +
                             std::to_string(arena.bytes) +
                             " bytes of its arena");
      const Section *section = findSection(buffer.section);
      if (!buffer.section.empty() &&
          (!section || section->bytes > static_cast<uint64_t>(buffer.bytes)))
        return Status::error("expected a section that fits for " + what);
      return Status();
    }
    return Status::error("found no arena of space " + inQuotes(buffer.space) +
                         " for " + what);
  }

  Status checkView(const Program &program, const Body &body, const View &view) {
    if (!inRange(view.buffer, 0, program.buffers.size()))
      return Status::error("found a view of no buffer");
    const BufferPlan &buffer = program.buffers[view.buffer];
    if (view.shape.size() != view.strides.size() || view.shape.size() > 8 ||
        boundedProduct(view.shape, dtypeBytes(view.dtype)) < 0)
      return Status::error("found a view of impossible shape");
    __int128 last = 0;
    bool empty = false;
    for (size_t i = 0; i < view.shape.size(); ++i) {
      if (!inRange(view.strides[i], 0, kLimit))
        return Status::error("found a view of impossible strides");
      empty |= view.shape[i] == 0;
      last += static_cast<__int128>(view.shape[i] - 1) * view.strides[i];
    }
    __int128 end =
        view.offset + (empty ? 0 : (last + 1) * dtypeBytes(view.dtype));
    for (const AxisStride &stride : view.axes) {
      int64_t size = axisSize(stride.axis);
      if (size == 0 || !inRange(stride.bytes, 0, kLimit))
        return Status::error("found a view along no axis");
      end += static_cast<__int128>(size - 1) * stride.bytes;
    }
    if (!inRange(view.offset, 0, kLimit) || end > buffer.bytes)
      return Status::error("found a view that leaves buffer " +
                           inQuotes(buffer.name));
    if (!inRange(view.slot, -1, body.slots) ||
        (view.slot == -1 && buffer.slots != 1))
      return Status::error("found a view of no slot of buffer " +
                           inQuotes(buffer.name));
    return Status();
  }

  Status checkCommand(const Program &program, const Body &body,
                      const Command &command) {
    Status status;
    auto check = [&](const View &view) {
      if (status.ok())
        status = checkView(program, body, view);
    };
    format::forEachView(command, check);
    for (const View &view : command.releases)
      check(view);
    ACCEL_RT_RETURN_IF_ERROR(status);
    if (auto *kernel = std::get_if<KernelCommand>(&command.what)) {
      if (!inRange(kernel->rows, 0, kLimit) ||
          !inRange(kernel->grid, 1, kLimit))
        return Status::error("expected rows and a grid of at least 1");
      if (!kernel->inputNames.empty() &&
          kernel->inputNames.size() != kernel->inputs.size())
        return Status::error("expected a name, which may be empty, for each "
                             "input of a kernel");
    }
    if (auto *fill = std::get_if<FillCommand>(&command.what))
      if (fill->value.size() !=
          static_cast<size_t>(dtypeBytes(fill->target.dtype)))
        return Status::error("expected a value of the view's element type");
    if (auto *copy = std::get_if<CopyCommand>(&command.what))
      if (copy->source.shape != copy->target.shape ||
          copy->source.dtype != copy->target.dtype)
        return Status::error("expected views of one shape and element type");
    if (auto *coordinate = std::get_if<CoordinateCommand>(&command.what)) {
      ACCEL_RT_RETURN_IF_ERROR(checkAxes(coordinate->axes, true));
      if (coordinate->target.dtype != DType::I64)
        return Status::error("expected a view of i64");
    }
    if (auto *collective = std::get_if<CollectiveCommand>(&command.what)) {
      ACCEL_RT_RETURN_IF_ERROR(checkAxes(collective->axes, false));
      if (collective->inputs.size() != collective->outputs.size())
        return Status::error("expected as many outputs as inputs");
    }
    if (auto *read = std::get_if<ReadCommand>(&command.what))
      return checkTransfer(read->source, read->name, read->part, read->target,
                           executable.inputs);
    if (auto *write = std::get_if<WriteCommand>(&command.what))
      return checkTransfer(write->target, write->name, write->part, write->view,
                           executable.outputs);
    return Status();
  }

  /// A read or write names a tensor of the tables with the same shape and type,
  /// and its view has the shape of one piece.
  Status checkTransfer(const std::string &kind, const std::string &name,
                       const Part &part, const View &view,
                       const std::vector<TensorPlan> &tensors) {
    ACCEL_RT_RETURN_IF_ERROR(checkPart(part, inQuotes(name)));
    std::vector<int64_t> piece = part.shape;
    for (size_t i = 0; i < piece.size(); ++i)
      for (const std::string &axis : part.axes[i])
        if (int64_t size = axisSize(axis)) {
          if (piece[i] % size)
            return Status::error("found a part that mesh axis " +
                                 inQuotes(axis) + " does not divide");
          piece[i] /= size;
        }
    if (piece.size() != view.shape.size())
      return Status::error("expected a view of the part's rank");
    for (size_t i = 0; i < piece.size(); ++i)
      if (view.shape[i] != piece[i])
        return Status::error("expected a view of the part's shape");
    auto fits = [&](const std::vector<int64_t> &shape, DType dtype) {
      return shape == part.shape && dtype == view.dtype;
    };
    if (kind == "state") {
      for (const StatePlan &state : executable.states)
        if (state.name == name)
          return !fits(state.shape, state.dtype)
                     ? Status::error("expected the shape of the state")
                 : state.part().axes != part.axes // pieces are checked by it
                     ? Status::error("expected the axes of the state")
                     : Status();
      return Status::error("found no state " + inQuotes(name));
    }
    for (const TensorPlan &tensor : tensors)
      if (tensor.name == name)
        return fits(tensor.part.shape, tensor.dtype)
                   ? Status()
                   : Status::error("expected the shape of the tensor");
    return Status::error("found no input or output " + inQuotes(name));
  }

  Status checkRun(const Program &program, const Run &run) {
    if (!inRange(run.body, 0, program.bodies.size()))
      return Status::error("found a run of no body");
    const Body &body = program.bodies[run.body];
    if (static_cast<int64_t>(run.slots.size()) != body.slots ||
        !inRange(run.microBatch, 0, executable.microBatches))
      return Status::error("expected " + std::to_string(body.slots) +
                           " slots and a micro-batch of " +
                           std::to_string(executable.microBatches) +
                           " for body " + inQuotes(body.name));
    Status status;
    auto check = [&](const View &view) {
      if (view.slot >= 0 && status.ok() &&
          !inRange(run.slots[view.slot], 0, program.buffers[view.buffer].slots))
        status = Status::error("found a slot out of range for body " +
                               inQuotes(body.name));
    };
    for (const Command &command : body.commands) {
      format::forEachView(command, check);
      for (const View &view : command.releases)
        check(view);
    }
    return status;
  }

  const Executable &executable;
};

} // namespace

Status validate(const Executable &executable) {
  return Validator(executable).run();
}

} // namespace accel::rt
