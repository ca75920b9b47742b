// Running a module of phase `plan`: in several orders that its waits allow, and
// each entry twice, for the same bits every time.

#include "lib/Evaluate/Entry.h"
#include "lib/Evaluate/Plan/Executor.h"

using namespace mlir;
using namespace accel;
using namespace accel::evaluate;

static void insert(SmallVectorImpl<NamedType> &list, StringRef name,
                   plan::PartAttr part, plan::ViewAttr view) {
  if (llvm::none_of(list, [&](NamedType &each) { return each.name == name; }))
    list.push_back({name.str(),
                    RankedTensorType::get(part.getShape(), view.getElement())});
}

/// The call that is asked for; none of a plan that is loaded and no more.
static FailureOr<StringRef> findCall(ModuleOp module, EntryKind kind) {
  llvm::SmallSetVector<StringRef, 4> calls;
  module.walk([&](plan::EntryOp entry) {
    if (entry.getKind() != plan::kLoadEntry)
      calls.insert(entry.getKind());
  });
  StringRef wanted = nn::stringifyEntryKind(kind.value_or(nn::EntryKind::step));
  if (calls.contains(wanted))
    return wanted;
  if (kind || calls.size() > 1)
    return module.emitError()
           << "expected an entry '" << wanted << "', found none";
  return calls.empty() ? StringRef() : calls.front();
}

FailureOr<Signature> evaluate::getPlanSignature(ModuleOp module,
                                                EntryKind kind) {
  FailureOr<StringRef> call = findCall(module, kind);
  if (failed(call))
    return failure();
  Signature signature;
  llvm::DenseSet<Operation *> bodies;
  module.walk([&](plan::RunOp run) {
    if (run->getParentOfType<plan::EntryOp>().getKind() == *call)
      bodies.insert(
          run->getParentOfType<plan::ProgramOp>().lookupSymbol(run.getTask()));
  });
  module.walk([&](Operation *op) {
    if (!bodies.contains(op->getParentOp()))
      return;
    if (auto read = dyn_cast<plan::ReadOp>(op);
        read && read.getSource() == plan::Source::input)
      insert(signature.inputs, read.getName(), read.getPart(),
             read.getTarget());
    if (auto write = dyn_cast<plan::WriteOp>(op);
        write && write.getDestination() == plan::Source::output)
      insert(signature.outputs, write.getName(), write.getPart(),
             write.getView());
  });
  return signature;
}

/// Fails, with an error at the module, unless both hold the same bits.
static LogicalResult checkSame(ModuleOp module, const TensorsByName &first,
                               const TensorsByName &second, StringRef when) {
  for (const auto &each : first) {
    auto bytesOf = [](const Tensor &tensor) {
      std::vector<char> bytes(tensor.getNumElements() *
                              tensor.getElementBytes());
      tensor.toBytes(bytes);
      return bytes;
    };
    auto other = second.find(each.getKey());
    if (other == second.end() ||
        bytesOf(each.getValue()) != bytesOf(other->second))
      return module.emitError()
             << "expected the same bits of '" << each.getKey() << "' " << when
             << ", found others";
  }
  return success();
}

/// One whole execution: `load`, then the call. Unless it changes states it runs
/// twice, which shows bytes that the first time destroyed.
static LogicalResult executeOnce(ModuleOp module, dist::MeshOp mesh,
                                 StringRef call, const TensorsByName &inputs,
                                 EvaluationMode mode, Policy policy,
                                 uint64_t seed, TensorsByName &outputs) {
  PlanWorld world(module, inputs, mode);
  PlanExecutor executor(world, mesh, policy, seed);
  if (failed(executor.load()))
    return failure();
  bool changesStates = call == nn::stringifyEntryKind(nn::EntryKind::step);
  for (const std::string &entry : executor.getEntries()) {
    if (entry != plan::kLoadEntry && entry != call)
      continue;
    int times = entry == plan::kLoadEntry || changesStates ? 1 : 2;
    TensorsByName written;
    for (int time = 0; time < times; ++time) {
      if (failed(executor.execute(entry)) ||
          (changesStates && entry != plan::kLoadEntry &&
           failed(executor.addStates())))
        return failure();
      FailureOr<TensorsByName> taken = world.takeOutputs();
      if (failed(taken))
        return failure();
      if (time > 0 && failed(checkSame(module, written, *taken,
                                       "from the second call of an entry")))
        return failure();
      written = std::move(*taken);
    }
    for (auto &each : written)
      outputs[each.getKey()] = each.getValue();
  }
  return success();
}

LogicalResult evaluate::evaluatePlan(ModuleOp module,
                                     const TensorsByName &inputs,
                                     const InterpreterOptions &options,
                                     TensorsByName &outputs) {
  FailureOr<dist::MeshOp> mesh = findMesh(module);
  FailureOr<StringRef> call = findCall(module, options.entry);
  if (failed(mesh) || failed(call))
    return failure();
  for (unsigned order = 0; order < std::max(options.interleavings, 1u);
       ++order) {
    Policy policy = order == 0   ? Policy::FirstStreamAhead
                    : order == 1 ? Policy::LastStreamAhead
                                 : Policy::Random;
    TensorsByName found;
    if (failed(executeOnce(module, *mesh, *call, inputs, options.mode, policy,
                           order, found)))
      return failure();
    if (order == 0)
      outputs = found;
    else if (failed(checkSame(module, outputs, found,
                              "in every order that the waits allow")))
      return failure();
  }
  return success();
}
