// What each command says of itself, and messages between programs.

#include "Format/Runs.h"
#include "Format/Tables.h"
#include "Format/Views.h"

#include <algorithm>

namespace accel::rt {
namespace {

/// A read or write names a tensor of the tables with the same shape and type, a
/// state with the same sharing, and its view has the shape of one piece, or of
/// those of each micro-batch.
Status checkTransfer(const Tables &tables, const std::string &kind,
                     const std::string &name, const Part &part,
                     const View &view, bool ofEach) {
  ACCEL_RT_RETURN_IF_ERROR(tables.checkPart(part, inQuotes(name)));
  std::vector<int64_t> piece = part.shape;
  for (size_t i = 0; i < piece.size(); ++i)
    for (const std::string &axis : part.axes[i]) {
      int64_t size = tables.axisSize(axis);
      if (piece[i] % size)
        return Status::error("found a part that mesh axis " + inQuotes(axis) +
                             " does not divide");
      piece[i] /= size;
    }
  if (ofEach)
    piece.insert(piece.begin(), tables.executable.microBatches);
  if (piece != view.shape)
    return Status::error(std::string("expected a view of the part's shape") +
                         (ofEach ? ", for each micro-batch" : ""));
  if (kind == "state" && ofEach)
    return Status::error("expected an input or an output of each micro-batch, "
                         "found state " +
                         inQuotes(name));
  if (kind == "state") {
    const StatePlan *state = tables.state(name);
    if (!state)
      return Status::error("found no state " + inQuotes(name));
    Part whole = state->keptPart();
    return whole.shape == part.shape && state->dtype == view.dtype &&
                   whole.axes == part.axes &&
                   whole.interleaved == part.interleaved
               ? Status()
               : Status::error("expected the shape of the state, shared as it "
                               "is");
  }
  const TensorPlan *tensor =
      kind == "input" ? tables.input(name) : tables.output(name);
  if (!tensor)
    return Status::error("found no input or output " + inQuotes(name));
  return tensor->shape == part.shape && tensor->dtype == view.dtype
             ? Status()
             : Status::error("expected the shape and type of the tensor");
}

class CommandValidator {
public:
  CommandValidator(const Tables &tables, const Program &program,
                   const Command &command)
      : tables(tables), program(program), command(command) {}

  Status check(const KernelCommand &kernel) {
    if (!inRange(kernel.rows, 0, kLimit) || !inRange(kernel.grid, 1, kLimit))
      return Status::error("expected rows and a grid of at least 1");
    if (!kernel.inputNames.empty() &&
        kernel.inputNames.size() != kernel.inputs.size())
      return Status::error("expected a name, which may be empty, for each "
                           "input of a kernel");
    for (const std::string &name : kernel.inputNames)
      if (!name.empty() && !tables.input(name))
        return Status::error("found no input " + inQuotes(name));
    return checkKernel();
  }
  Status check(const AttentionCommand &attention) {
    ACCEL_RT_RETURN_IF_ERROR(checkOffsets(attention));
    return checkKernel();
  }
  Status check(const AttentionGradCommand &grad) {
    ACCEL_RT_RETURN_IF_ERROR(checkOffsets(grad));
    return checkKernel();
  }
  Status check(const FillCommand &fill) {
    bool fits =
        fill.value.size() == static_cast<size_t>(dtypeBytes(fill.target.dtype));
    for (int64_t byte : fill.value)
      fits &= inRange(byte, 0, 256);
    return fits ? Status()
                : Status::error("expected a value of the view's element type");
  }
  Status check(const CopyCommand &copy) {
    return copy.source.shape == copy.target.shape &&
                   copy.source.dtype == copy.target.dtype
               ? Status()
               : Status::error("expected views of one shape and element type");
  }
  Status check(const CoordinateCommand &coordinate) {
    ACCEL_RT_RETURN_IF_ERROR(tables.checkAxes(coordinate.axes, true));
    return coordinate.target.dtype == DType::I64 &&
                   boundedProduct(coordinate.target.shape, 1) == 1
               ? Status()
               : Status::error("expected a view of i64, of one element");
  }
  Status check(const CollectiveCommand &collective) {
    ACCEL_RT_RETURN_IF_ERROR(tables.checkAxes(collective.axes, false));
    return collective.inputs.size() == collective.outputs.size()
               ? Status()
               : Status::error("expected as many outputs as inputs");
  }
  Status check(const ReadCommand &read) {
    if (read.source != "input" && read.source != "state")
      return Status::error("expected a read of an input or a state, found one "
                           "of " +
                           inQuotes(read.source));
    const BufferPlan &buffer = program.buffers[read.target.buffer];
    if (!buffer.source.empty() &&
        (read.source != "state" || read.name != buffer.source))
      return Status::error("expected the state " + inQuotes(buffer.source) +
                           " in the buffer that keeps it, found " +
                           inQuotes(read.name));
    return checkTransfer(tables, read.source, read.name, read.part, read.target,
                         read.eachMicroBatch);
  }
  Status check(const WriteCommand &write) {
    if (write.target != "output")
      return Status::error("expected a write of an output, found one of " +
                           inQuotes(write.target));
    return checkTransfer(tables, write.target, write.name, write.part,
                         write.view, write.eachMicroBatch);
  }
  template <class Other> Status check(const Other &) { return Status(); }

  /// What is overwritten at will holds no value.
  template <class Any, class = void> struct HasScratch : std::false_type {};
  template <class Any>
  struct HasScratch<Any, std::void_t<decltype(std::declval<Any>().scratch)>>
      : std::true_type {};
  template <class Any> Status checkScratch(const Any &what) const {
    if constexpr (HasScratch<Any>::value)
      if (what.scratch &&
          program.buffers[what.scratch->buffer].role != "scratch")
        return Status::error(
            "expected scratch in a buffer of role 'scratch', found it in " +
            inQuotes(program.buffers[what.scratch->buffer].name) + " of role " +
            inQuotes(program.buffers[what.scratch->buffer].role));
    return Status();
  }

private:
  template <class AnyAttention>
  Status checkOffsets(const AnyAttention &attention) {
    bool fit = inRange(attention.rowOffset, 0, kLimit) &&
               inRange(attention.columnOffset, 0, kLimit);
    bool moves = false;
    for (const Form *steps : {&attention.rowSteps, &attention.columnSteps}) {
      std::vector<std::string> axes;
      for (const auto &[axis, step] : *steps) {
        axes.push_back(axis);
        auto *number = std::get_if<int64_t>(&step);
        fit = fit && number && inRange(*number, 0, kLimit);
      }
      ACCEL_RT_RETURN_IF_ERROR(tables.checkAxes(axes, false));
      moves |= !axes.empty();
    }
    fit = fit && inRange(attention.turn, 0, kLimit) &&
          (attention.turn == 0 || !attention.columnSteps.empty());
    fit = fit && inRange(attention.stride, 1, kLimit);
    if (!attention.causal)
      fit = attention.rowOffset == 0 && attention.columnOffset == 0 && !moves &&
            attention.stride == 1;
    return fit ? Status()
               : Status::error("expected offsets of rows and columns of at "
                               "least 0 and a stride of at least 1, and of "
                               "causal attention only");
  }
  /// The code is called as it was compiled to be.
  Status checkKernel() {
    std::optional<KernelPlan> kernel = kernelSignature(program, command);
    if (!kernel || tables.hasKernel(*kernel))
      return Status();
    return Status::error("expected the rows and views that kernel " +
                         inQuotes(kernel->function) +
                         " was compiled for, found others");
  }

  const Tables &tables;
  const Program &program;
  const Command &command;
};

} // namespace

Status checkCommand(const Tables &tables, const Program &program,
                    const Command &command) {
  if (command.stream.empty())
    return Status::error("expected the name of a stream, found none");
  CommandValidator validator(tables, program, command);
  return std::visit(
      [&](const auto &what) {
        ACCEL_RT_RETURN_IF_ERROR(validator.checkScratch(what));
        return validator.check(what);
      },
      command.what);
}

Status checkMessages(const Executable &executable) {
  struct Message {
    int64_t open = 0; ///< Sends less receives.
    const View *view = nullptr;
    std::string node;
  };
  // By the entry, too: those of an earlier call have all come.
  std::map<std::tuple<std::string, std::string, int64_t, int64_t>, Message>
      messages;
  Status status;
  std::string entryName; // at hand
  int64_t trips = 1;     // of the loop at hand
  auto add = [&](const std::string &axis, int64_t delta, int64_t tag,
                 int64_t count, const View &view, const std::string &node) {
    Message &message = messages[{entryName, axis, delta, tag}];
    if (message.view &&
        (message.view->shape != view.shape ||
         message.view->dtype != view.dtype) &&
        status.ok())
      status = Status::error("expected what node " + inQuotes(node) +
                             " receives to have the shape that node " +
                             inQuotes(message.node) + " sends");
    message.open += count * trips;
    message.view = &view;
    message.node = node;
  };
  auto send = [&](const SendCommand &one, const std::string &node) {
    add(one.axis, one.delta, one.tag, 1, one.view, node);
  };
  auto recv = [&](const RecvCommand &one, const std::string &node) {
    if (!inRange(one.delta, -kLimit, kLimit))
      status = Status::error("found a message from nowhere");
    else
      add(one.axis, -one.delta, one.tag, -1, one.view, node);
  };
  for (const Program &program : executable.programs)
    for (const Entry &entry : program.entries)
      format::forEachRun(entry, [&](const Run &run, const Loop &loop) {
        entryName = entry.name;
        trips = loop.trips;
        for (const Command &command : program.bodies[run.body].commands) {
          if (auto *one = std::get_if<SendCommand>(&command.what))
            send(*one, command.node);
          if (auto *one = std::get_if<RecvCommand>(&command.what))
            recv(*one, command.node);
          if (auto *group = std::get_if<GroupCommand>(&command.what)) {
            for (const SendCommand &one : group->sends)
              send(one, command.node);
            for (const RecvCommand &one : group->recvs)
              recv(one, command.node);
          }
        }
      });
  for (auto &[key, message] : messages)
    if (message.open && status.ok())
      status =
          Status::error("found a message of node " + inQuotes(message.node) +
                        (message.open > 0 ? " that no rank receives"
                                          : " that no rank sends"));
  return status;
}

} // namespace accel::rt
