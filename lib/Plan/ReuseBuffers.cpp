// Lets elementwise kernels write where they read: the result takes the buffer
// of an operand that nothing reads afterwards.

#include "CommandOrder.h"

#include "accel/Plan/Passes.h"
#include "dialects/Interfaces/KernelSource.h"
#include "mlir/IR/AttrTypeSubElements.h"

using namespace mlir;

namespace accel::plan {
#define GEN_PASS_DEF_REUSEBUFFERSPASS
#include "accel/Plan/Passes.h.inc"

namespace {
/// Whether element i of every result depends, of this argument, on element i
/// (in row-major order) only, and nothing in the kernel reads it a second time
/// after a result is written: no op loops over a row.
bool isReadInPlace(func::FuncOp kernel, BlockArgument argument) {
  for (Operation &op : kernel.getBody().front().without_terminator())
    if (cast<KernelSourceOpInterface>(op).getKernelRole() ==
        KernelRole::RowReduction)
      return false;
  SmallVector<Value> work{argument};
  while (!work.empty()) {
    Value value = work.pop_back_val();
    for (Operation *user : value.getUsers()) {
      auto source = dyn_cast<KernelSourceOpInterface>(user);
      if (!source) // the return
        continue;
      if (source.getKernelRole() != KernelRole::Elementwise) {
        // A reshape keeps the order; nothing else that moves elements does.
        auto from = cast<RankedTensorType>(value.getType());
        auto to = cast<RankedTensorType>(user->getResult(0).getType());
        StridedView view = StridedView::contiguous(from.getShape());
        if (user->getNumOperands() != 1 || failed(source.applyToView(view)) ||
            !view.isContiguous() || view.offset != 0 ||
            from.getNumElements() != to.getNumElements())
          return false;
      }
      work.push_back(user->getResult(0));
    }
  }
  return true;
}

struct ReuseBuffersPass : impl::ReuseBuffersPassBase<ReuseBuffersPass> {
  using Base::Base;

  void runOnOperation() override {
    for (auto program : getOperation().getOps<ProgramOp>())
      if (failed(runOnProgram(program)))
        return signalPassFailure();
  }

  LogicalResult runOnProgram(ProgramOp program) {
    FailureOr<CommandOrder> order = CommandOrder::compute(program);
    if (failed(order))
      return failure();
    // Accesses of each buffer; reuse merges two lists into one.
    llvm::DenseMap<StringAttr, SmallVector<const Execution *>> accesses;
    llvm::DenseMap<Operation *, unsigned> executed;
    for (const Execution &execution : order->getExecutions()) {
      CommandOpInterface command = execution.command;
      ++executed[command];
      for (ViewAttr view : getViews(command))
        accesses[view.getBuffer().getAttr()].push_back(&execution);
    }
    for (const Execution &execution : order->getExecutions()) {
      CommandOpInterface command = execution.command;
      auto kernel = dyn_cast<KernelOp>(command.getOperation());
      if (!kernel || kernel.getOutputs().size() != 1 || executed[kernel] != 1)
        continue;
      auto output = cast<ViewAttr>(kernel.getOutputs()[0]);
      for (auto [number, attribute] : llvm::enumerate(kernel.getInputs())) {
        auto input = cast<ViewAttr>(attribute);
        if (!canReplace(program, kernel, number, input, output) ||
            !llvm::all_of(accesses[input.getBuffer().getAttr()],
                          [&](const Execution *access) {
                            return access == &execution ||
                                   CommandOrder::happensBefore(*access,
                                                               execution);
                          }))
          continue;
        replace(program, output.getBuffer(), input.getBuffer());
        llvm::append_range(accesses[input.getBuffer().getAttr()],
                           accesses[output.getBuffer().getAttr()]);
        break;
      }
    }
    return success();
  }

  bool canReplace(ProgramOp program, KernelOp kernel, unsigned number,
                  ViewAttr input, ViewAttr output) {
    auto from = program.lookupSymbol<BufferOp>(input.getBuffer());
    auto to = program.lookupSymbol<BufferOp>(output.getBuffer());
    auto isWhole = [](BufferOp buffer, ViewAttr view) {
      return view.getOffset() == 0 && view.isContiguous() &&
             view.getAxes().empty() && buffer.getSlots() == 1 &&
             view.getSpanBytes() == static_cast<int64_t>(buffer.getBytes());
    };
    bool ours =
        from.getRole() == Role::activation &&
        (to.getRole() == Role::activation || to.getRole() == Role::output);
    // The same view twice among the inputs: the other one might be read
    // differently.
    bool once = llvm::count_if(kernel.getInputs(), [&](Attribute other) {
                  return cast<ViewAttr>(other).getBuffer() == input.getBuffer();
                }) == 1;
    auto function =
        getOperation().lookupSymbol<func::FuncOp>(kernel.getFunction());
    return ours && once && from != to && from.getSpace() == to.getSpace() &&
           isWhole(from, input) && isWhole(to, output) &&
           input.getElement() == output.getElement() &&
           from.getBytes() == to.getBytes() &&
           isReadInPlace(function, function.getArgument(number));
  }

  /// Everything that named `old` names `kept` instead.
  void replace(ProgramOp program, FlatSymbolRefAttr old,
               FlatSymbolRefAttr kept) {
    AttrTypeReplacer replacer;
    replacer.addReplacement([&](ViewAttr view) -> std::optional<Attribute> {
      if (view.getBuffer() != old)
        return std::nullopt;
      return ViewAttr::get(view.getContext(), kept, view.getOffset(),
                           view.getSlot(), view.getAxes(), view.getElement(),
                           view.getShape(), view.getStrides());
    });
    for (auto body : program.getOps<BodyOp>())
      body.walk([&](CommandOpInterface command) {
        replacer.replaceElementsIn(command);
      });
    auto gone = program.lookupSymbol<BufferOp>(old);
    if (gone.getRole() == Role::output)
      program.lookupSymbol<BufferOp>(kept).setRole(Role::output);
    gone.erase();
  }
};
} // namespace
} // namespace accel::plan
