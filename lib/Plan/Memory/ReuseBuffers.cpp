// Lets kernels write where they read: a result takes the buffer of an operand
// that nothing reads afterwards, and the new value of a state the state's own.

#include "BufferAccesses.h"

#include "dialects/Interfaces/KernelSource.h"
#include "dialects/NN/NN.h"
#include "lib/Plan/ComputeStream.h"
#include "lib/Plan/Passes.h"
#include "lib/Plan/Rows.h"
#include "mlir/IR/AttrTypeSubElements.h"

using namespace mlir;

namespace accel::plan {
#define GEN_PASS_DEF_REUSEBUFFERSPASS
#include "lib/Plan/Passes.h.inc"

/// Whether all results of a kernel are written by the same loops.
static bool hasOneNest(func::FuncOp kernel) {
  ArrayRef<Type> types = kernel.getResultTypes();
  return llvm::all_of(types, [&](Type type) {
    return cast<RankedTensorType>(type).getShape() ==
           cast<RankedTensorType>(types.front()).getShape();
  });
}

/// Whether an op leaves all elements in their row-major order.
static bool keepsOrder(KernelSourceOpInterface source) {
  Operation *op = source;
  auto from = cast<RankedTensorType>(op->getOperand(0).getType());
  auto to = cast<RankedTensorType>(op->getResult(0).getType());
  StridedView view = StridedView::contiguous(from.getShape());
  return op->getNumOperands() == 1 && succeeded(source.applyToView(view)) &&
         view.isContiguous() && view.offset == 0 &&
         from.getNumElements() == to.getNumElements();
}

/// Whether each element is repeated where it stands: elements that are one
/// after another come so many times each, one after another.
static bool repeatsInPlace(Operation *op) {
  auto broadcast = dyn_cast<nn::BroadcastOp>(op);
  if (!broadcast)
    return false;
  ArrayRef<int64_t> from = broadcast.getInput().getType().getShape(),
                    to = broadcast.getType().getShape();
  bool repeats = false;
  for (size_t dim = 0; dim < to.size(); ++dim) {
    size_t added = to.size() - from.size();
    int64_t size = dim < added ? 1 : from[dim - added];
    if (size != 1 && repeats)
      return false;
    repeats |= size != to[dim];
  }
  return true;
}

/// Whether what is made of numbers, each of elements that are one after
/// another, reads in the place of these elements that number alone, or all of
/// a row before it is written: a kernel computes a number where it is read.
static bool staysInRows(Value numbers, int64_t rows) {
  llvm::SmallSetVector<Value, 8> values;
  values.insert(numbers);
  for (size_t next = 0; next < values.size(); ++next)
    for (OpOperand &use : values[next].getUses()) {
      Operation *user = use.getOwner();
      auto source = dyn_cast<KernelSourceOpInterface>(user);
      if (!source) // the return
        continue;
      bool stays = source.getKernelRole() == KernelRole::Elementwise ||
                   (source.getKernelRole() == KernelRole::RowReduction
                        ? source.readsRowFirst(use.getOperandNumber(), rows)
                        : keepsOrder(source) || repeatsInPlace(user));
      if (!stays)
        return false;
      values.insert(user->getResult(0));
    }
  return true;
}

/// Whether a kernel may write its results over this argument: what it reads of
/// element i (in row-major order) it reads before it writes element i of any
/// result, and it reads nothing of it afterwards.
static bool isReadInPlace(func::FuncOp kernel, BlockArgument argument) {
  int64_t rows = kernel->getAttrOfType<IntegerAttr>(kRowsAttr).getInt();
  if (!hasOneNest(kernel))
    return false;
  llvm::SmallSetVector<Value, 8> values; // each once, not once for each path
  values.insert(argument);
  for (size_t next = 0; next < values.size(); ++next) {
    Value value = values[next];
    for (OpOperand &use : value.getUses()) {
      Operation *user = use.getOwner();
      auto source = dyn_cast<KernelSourceOpInterface>(user);
      if (!source) // the return
        continue;
      if (source.getKernelRole() == KernelRole::RowReduction) {
        if (!source.readsRowFirst(use.getOperandNumber(), rows))
          return false;
        // Of a row that is combined the values are there before it is written.
        if (cast<RankedTensorType>(value.getType()).getShape() !=
            cast<RankedTensorType>(user->getResult(0).getType()).getShape()) {
          if (!staysInRows(user->getResult(0), rows))
            return false;
          continue;
        }
      } else if (source.getKernelRole() != KernelRole::Elementwise &&
                 !keepsOrder(source)) {
        return false;
      }
      values.insert(user->getResult(0));
    }
  }
  return true;
}

/// Whether a view is all of a buffer; of one with copies, of the run's own.
static bool isWhole(BufferOp buffer, ViewAttr view) {
  return view.getOffset() == 0 && view.isContiguous() &&
         view.getAxes().empty() &&
         view.getSpanBytes() == static_cast<int64_t>(buffer.getBytes());
}

namespace {
/// One program.
class Reuse {
public:
  explicit Reuse(ProgramOp program)
      : program(program), functions(program->getParentOfType<ModuleOp>()),
        buffers(program), accesses(program) {}
  LogicalResult run();

private:
  void writeStatesInPlace(BodyOp body);
  bool canWriteState(BodyOp body, CopyOp copy);
  bool canReplace(KernelOp kernel, unsigned number, ViewAttr input,
                  ViewAttr output);
  void replace(FlatSymbolRefAttr old, FlatSymbolRefAttr kept);
  func::FuncOp functionOf(KernelOp kernel) {
    return functions.lookup<func::FuncOp>(kernel.getFunction());
  }
  BufferOp bufferOf(ViewAttr view) {
    return buffers.lookup<BufferOp>(view.getBuffer().getValue());
  }

  ProgramOp program;
  SymbolTable functions, buffers;
  BufferAccesses accesses;
};

struct ReuseBuffersPass : impl::ReuseBuffersPassBase<ReuseBuffersPass> {
  using Base::Base;

  void runOnOperation() override {
    for (auto program : getOperation().getOps<ProgramOp>())
      if (failed(Reuse(program).run()))
        return signalPassFailure();
  }
};
} // namespace

//===----------------------------------------------------------------------===//
// States
//===----------------------------------------------------------------------===//

/// Whether a command of the same body that comes first has ended when the
/// other begins: a collective may go on beside kernels until these wait.
static bool hasEnded(CommandOpInterface first, CommandOpInterface other) {
  StringRef stream = first.getStreamName();
  if (stream == other.getStreamName() || stream == kComputeStream)
    return true;
  llvm::SmallDenseSet<StringRef> told;
  for (Operation *op = first->getNextNode(); op != other.getOperation();
       op = op->getNextNode()) {
    auto record = dyn_cast<RecordOp>(op);
    if (record && record.getStream() == stream)
      told.insert(record.getEvent());
    auto wait = dyn_cast<WaitOp>(op);
    if (wait && wait.getStream() == other.getStreamName() &&
        told.contains(wait.getEvent()))
      return true;
  }
  return false;
}

/// Whether the kernel, or the collective, that makes what `copy` copies can
/// write it where it goes: nothing else reads the old value from there on. A
/// collective on a stream of its own begins when all before it in the body has
/// ended.
bool Reuse::canWriteState(BodyOp body, CopyOp copy) {
  BufferOp from = bufferOf(copy.getSource()), to = bufferOf(copy.getTarget());
  if (from.getRole() != Role::activation || to.getRole() != Role::state ||
      from.getSpace() != to.getSpace() || from.getSlots() != 1 ||
      to.getSlots() != 1 || !isWhole(from, copy.getSource()) ||
      !isWhole(to, copy.getTarget()) ||
      copy.getSource().getElement() != copy.getTarget().getElement())
    return false;
  auto isOf = [](BufferOp buffer, ViewAttr view) {
    return view.getBuffer().getAttr() == buffer.getSymNameAttr();
  };
  // Written once, before the copy, in this body alone.
  CommandOpInterface writer;
  for (CommandOpInterface command : accesses.getUsers(from.getSymNameAttr())) {
    if (command->getParentOp() != body)
      return false;
    for (ViewAttr view : command.getWrites()) {
      if (!isOf(from, view))
        continue;
      if (writer || !isWhole(from, view) || !command->isBeforeInBlock(copy) ||
          !isa<KernelOp, CollectiveOp>(command.getOperation()))
        return false;
      writer = command;
    }
  }
  if (!writer)
    return false;
  // The old value may be read before, and by the kernel itself element by
  // element.
  for (CommandOpInterface command : accesses.getUsers(to.getSymNameAttr())) {
    if (command->getParentOp() != body || command == copy)
      continue;
    for (ViewAttr view : command.getWrites())
      if (isOf(to, view))
        return false;
    if (command == writer || copy->isBeforeInBlock(command))
      continue;
    if (writer->isBeforeInBlock(command) || !hasEnded(command, writer))
      return false;
  }
  auto kernel = dyn_cast<KernelOp>(writer.getOperation());
  if (!kernel) // ranks read of each other what others have written
    return llvm::none_of(writer.getReads(),
                         [&](ViewAttr view) { return isOf(to, view); });
  func::FuncOp function = functionOf(kernel);
  for (auto [number, attribute] : llvm::enumerate(kernel.getInputs())) {
    auto view = cast<ViewAttr>(attribute);
    if (isOf(to, view) &&
        (!isWhole(to, view) ||
         !isReadInPlace(function, function.getArgument(number))))
      return false;
  }
  return true;
}

void Reuse::writeStatesInPlace(BodyOp body) {
  for (auto copy : llvm::make_early_inc_range(body.getOps<CopyOp>())) {
    if (!canWriteState(body, copy))
      continue;
    FlatSymbolRefAttr from = copy.getSource().getBuffer(),
                      to = copy.getTarget().getBuffer();
    llvm::erase(accesses.getUsers(from.getAttr()), copy);
    llvm::erase(accesses.getUsers(to.getAttr()), copy);
    copy.erase();
    replace(from, to);
  }
}

//===----------------------------------------------------------------------===//
// Activations
//===----------------------------------------------------------------------===//

LogicalResult Reuse::run() {
  for (auto body : program.getOps<BodyOp>())
    writeStatesInPlace(body);
  FailureOr<CommandOrder> order = CommandOrder::compute(program);
  if (failed(order))
    return failure();
  accesses.follow(*order);
  SmallVector<KernelOp> kernels;
  program.walk([&](KernelOp kernel) { kernels.push_back(kernel); });
  for (KernelOp kernel : kernels)
    for (unsigned result = 0; result < kernel.getOutputs().size(); ++result)
      for (unsigned number = 0; number < kernel.getInputs().size(); ++number) {
        auto output = cast<ViewAttr>(kernel.getOutputs()[result]);
        auto input = cast<ViewAttr>(kernel.getInputs()[number]);
        if (!canReplace(kernel, number, input, output) ||
            !accesses.isLastUse(kernel, bufferOf(input)) ||
            !accesses.canShareBytes(bufferOf(input), bufferOf(output)))
          continue;
        replace(output.getBuffer(), input.getBuffer());
        break;
      }
  return success();
}

bool Reuse::canReplace(KernelOp kernel, unsigned number, ViewAttr input,
                       ViewAttr output) {
  BufferOp from = bufferOf(input), to = bufferOf(output);
  bool ours =
      from.getRole() == Role::activation &&
      (to.getRole() == Role::activation || to.getRole() == Role::output);
  // The same buffer twice among the inputs: the other one might be read
  // differently. Among the outputs: it is taken.
  auto isFrom = [&](Attribute other) {
    return cast<ViewAttr>(other).getBuffer() == input.getBuffer();
  };
  func::FuncOp function = functionOf(kernel);
  return ours && llvm::count_if(kernel.getInputs(), isFrom) == 1 &&
         llvm::none_of(kernel.getOutputs(), isFrom) && from != to &&
         (from.getSpace() == to.getSpace() ||
          (from.getSpace() == Space::device &&
           to.getSpace() == Space::shared)) &&
         isWhole(from, input) && isWhole(to, output) &&
         input.getElement() == output.getElement() &&
         from.getBytes() == to.getBytes() &&
         isReadInPlace(function, function.getArgument(number));
}

/// Everything that named `old` names `kept` instead.
void Reuse::replace(FlatSymbolRefAttr old, FlatSymbolRefAttr kept) {
  AttrTypeReplacer replacer;
  replacer.addReplacement([&](ViewAttr view) -> std::optional<Attribute> {
    if (view.getBuffer() != old)
      return std::nullopt;
    return ViewAttr::get(view.getContext(), kept, view.getOffset(),
                         view.getAxes(), view.getElement(), view.getShape(),
                         view.getStrides());
  });
  for (CommandOpInterface command : accesses.getUsers(old.getAttr()))
    replacer.replaceElementsIn(command);
  accesses.merge(old.getAttr(), kept.getAttr());
  auto gone = buffers.lookup<BufferOp>(old.getValue());
  auto stays = buffers.lookup<BufferOp>(kept.getValue());
  stays.setSlots(std::max(stays.getSlots(), gone.getSlots()));
  // What other ranks read later is written where they can.
  stays.setSpace(gone.getSpace());
  if (gone.getRole() == Role::output && stays.getRole() == Role::activation)
    stays.setRole(Role::output);
  buffers.erase(gone);
}
} // namespace accel::plan
