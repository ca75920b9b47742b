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

FailureOr<Signature> evaluate::getPlanSignature(ModuleOp module) {
  Signature signature;
  module.walk([&](Operation *op) {
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

/// One whole execution: `load`, then every other entry. Unless states change,
/// these run twice, which shows bytes that the first time destroyed.
static LogicalResult executeOnce(ModuleOp module, dist::MeshOp mesh,
                                 const TensorsByName &inputs,
                                 EvaluationMode mode, Policy policy,
                                 uint64_t seed, TensorsByName &outputs) {
  PlanWorld world(module, inputs, mode);
  PlanExecutor executor(world, mesh, policy, seed);
  if (failed(executor.load()))
    return failure();
  bool changesStates = false;
  module.walk([&](plan::EntryOp entry) {
    changesStates |= entry.getSymName() == "step";
  });
  for (const std::string &entry : executor.getEntries()) {
    int times = entry == "load" || changesStates ? 1 : 2;
    TensorsByName written;
    for (int time = 0; time < times; ++time) {
      if (failed(executor.execute(entry)) ||
          (changesStates && entry != "load" && failed(executor.addStates())))
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
  if (failed(mesh))
    return failure();
  for (unsigned order = 0; order < std::max(options.interleavings, 1u);
       ++order) {
    Policy policy = order == 0   ? Policy::FirstStreamAhead
                    : order == 1 ? Policy::LastStreamAhead
                                 : Policy::Random;
    TensorsByName found;
    if (failed(executeOnce(module, *mesh, inputs, options.mode, policy, order,
                           found)))
      return failure();
    if (order == 0)
      outputs = found;
    else if (failed(checkSame(module, outputs, found,
                              "in every order that the waits allow")))
      return failure();
  }
  return success();
}
