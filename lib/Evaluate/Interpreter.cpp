// Running a module of any phase: binds global inputs and states to the entry's
// arguments, and puts its outputs together.

#include "Interpreter.h"

#include "dialects/Plan/Plan.h"
#include "lib/Evaluate/Entry.h"
#include "lib/Evaluate/Lockstep.h"
#include "lib/Evaluate/Schedule.h"
#include "lib/Evaluate/States.h"

#include <cmath>

using namespace mlir;
using namespace accel;
using namespace accel::evaluate;

//===----------------------------------------------------------------------===//
// The entry
//===----------------------------------------------------------------------===//

bool evaluate::isPlan(ModuleOp module) {
  return !module.getOps<plan::ProgramOp>().empty();
}

FailureOr<func::FuncOp> evaluate::findEntry(ModuleOp module, EntryKind kind) {
  if (func::FuncOp found =
          nn::findEntry(module, kind.value_or(nn::EntryKind::step)))
    return found;
  if (kind)
    return module.emitError()
           << "expected an entry of kind '" << nn::stringifyEntryKind(*kind)
           << "', found none";
  SmallVector<func::FuncOp> entries = nn::getEntries(module);
  if (entries.empty())
    for (auto function : module.getOps<func::FuncOp>())
      if (function.isPublic() && !function->hasAttr(plan::kKernelAttr))
        entries.push_back(function);
  if (entries.size() != 1)
    return module.emitError()
           << "expected one function with '" << nn::kEntryAttr << "', found "
           << entries.size();
  return entries.front();
}

FailureOr<dist::MeshOp> evaluate::findMesh(ModuleOp module) {
  dist::MeshOp mesh;
  for (auto each : module.getOps<dist::MeshOp>()) {
    if (mesh)
      return each.emitOpError() << "expected one mesh, found a second";
    mesh = each;
  }
  return mesh;
}

/// From the attributes of one argument or result.
static FailureOr<Binding> makeBinding(func::FuncOp entry, Type type,
                                      DictionaryAttr attributes,
                                      StringRef nameAttr, Twine fallback) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor || !tensor.hasStaticShape())
    return entry.emitOpError()
           << "expected statically shaped tensors, found " << type;
  Binding binding;
  binding.element = tensor.getElementType();
  binding.placement = Placement::replicated(tensor.getShape());
  binding.name = fallback.str();
  if (!attributes)
    return binding;
  if (auto name = attributes.getAs<StringAttr>(nameAttr))
    binding.name = name.str();
  if (auto state = attributes.getAs<FlatSymbolRefAttr>(nn::kStateAttr)) {
    binding.isState = true;
    binding.name = ("@" + state.getValue()).str();
  }
  if (auto layout = attributes.getAs<dist::LayoutAttr>(dist::kLayoutAttr)) {
    binding.placement.shape.assign(layout.getShape().begin(),
                                   layout.getShape().end());
    for (auto [dim, axes] : llvm::enumerate(layout.getDims()))
      llvm::append_range(binding.placement.axes[dim], axes.getNames());
    binding.placement.interleaved = layout.getInterleaved();
  } else {
    binding.placement.interleaved =
        attributes.getAs<dist::InterleavedAttr>(dist::kInterleavedAttr);
  }
  return binding;
}

FailureOr<Bindings> evaluate::getBindings(func::FuncOp entry) {
  Bindings bindings;
  for (auto [index, type] : llvm::enumerate(entry.getArgumentTypes())) {
    FailureOr<Binding> binding =
        makeBinding(entry, type, entry.getArgAttrDict(index), nn::kInputAttr,
                    "arg" + Twine(index));
    if (failed(binding))
      return failure();
    bindings.arguments.push_back(*binding);
  }
  for (auto [index, type] : llvm::enumerate(entry.getResultTypes())) {
    FailureOr<Binding> binding =
        makeBinding(entry, type, entry.getResultAttrDict(index),
                    nn::kOutputAttr, "result" + Twine(index));
    if (failed(binding))
      return failure();
    bindings.results.push_back(*binding);
  }
  return bindings;
}

FailureOr<Signature> evaluate::getSignature(ModuleOp module, EntryKind kind) {
  if (isPlan(module))
    return getPlanSignature(module, kind);
  FailureOr<func::FuncOp> entry = findEntry(module, kind);
  if (failed(entry))
    return failure();
  FailureOr<Bindings> bindings = getBindings(*entry);
  if (failed(bindings))
    return failure();
  Signature signature;
  auto append = [](ArrayRef<Binding> from, SmallVectorImpl<NamedType> &to) {
    for (const Binding &binding : from)
      if (!binding.isState)
        to.push_back(
            {binding.name,
             RankedTensorType::get(binding.placement.shape, binding.element)});
  };
  append(bindings->arguments, signature.inputs);
  append(bindings->results, signature.outputs);
  return signature;
}

//===----------------------------------------------------------------------===//
// Functions
//===----------------------------------------------------------------------===//

/// The global tensors of the arguments, in their order.
static LogicalResult collectArguments(func::FuncOp entry,
                                      ArrayRef<Binding> bindings,
                                      const TensorsByName &inputs,
                                      SmallVectorImpl<Tensor> &arguments) {
  for (const Binding &binding : bindings) {
    Tensor &tensor = arguments.emplace_back();
    tensor = inputs.lookup(binding.name);
    if (binding.isState && !tensor) {
      auto state = SymbolTable::lookupNearestSymbolFrom<nn::StateOp>(
          entry, StringAttr::get(entry.getContext(),
                                 StringRef(binding.name).drop_front()));
      if (!state)
        return entry.emitOpError() << "names no nn.state " << binding.name;
      FailureOr<Tensor> value = loadState(state);
      if (failed(value))
        return failure();
      tensor = *value;
    }
    auto type = RankedTensorType::get(binding.placement.shape, binding.element);
    if (!tensor)
      return entry.emitOpError()
             << "expected an input '" << binding.name << "', found none";
    if (!tensor.hasType(type))
      return entry.emitOpError() << "expected '" << binding.name << "' of type "
                                 << type << ", found " << tensor.getType();
  }
  return success();
}

/// Whether arguments or results are one rank's pieces: after localisation.
static bool isLocal(func::FuncOp entry) {
  for (unsigned index = 0; index < entry.getNumArguments(); ++index)
    if (entry.getArgAttr(index, dist::kLayoutAttr))
      return true;
  for (unsigned index = 0; index < entry.getNumResults(); ++index)
    if (entry.getResultAttr(index, dist::kLayoutAttr))
      return true;
  return false;
}

/// Refuses a schedule that the loop over micro-batches below does not follow.
static LogicalResult checkSchedule(func::FuncOp entry) {
  dist::ScheduleOp schedule = findSchedule(entry);
  if (!schedule)
    return success();
  WalkResult result = schedule.walk([&](dist::RunOp run) {
    if (run.getTask() == entry.getSymName())
      return WalkResult::advance();
    run.emitOpError() << "expected the entry @" << entry.getSymName()
                      << " as the only task, found " << run.getTaskAttr();
    return WalkResult::interrupt();
  });
  return failure(result.wasInterrupted());
}

static LogicalResult evaluateEntry(ModuleOp module, const TensorsByName &inputs,
                                   const InterpreterOptions &options,
                                   TensorsByName &outputs) {
  FailureOr<func::FuncOp> entry = findEntry(module, options.entry);
  FailureOr<dist::MeshOp> mesh = findMesh(module);
  if (failed(entry) || failed(mesh) ||
      (!entry->isExternal() && failed(checkSchedule(*entry))))
    return failure();
  FailureOr<Bindings> bindings = getBindings(*entry);
  if (failed(bindings))
    return failure();
  Location loc = entry->getLoc();
  for (const Binding &binding :
       llvm::concat<Binding>(bindings->arguments, bindings->results))
    if (failed(binding.placement.verify({*mesh}, loc)))
      return failure();
  SmallVector<Tensor> arguments;
  if (failed(collectArguments(*entry, bindings->arguments, inputs, arguments)))
    return failure();

  // Before localisation, tensors are whole: a module of one rank, whatever the
  // mesh. After it, every rank runs the function once per micro-batch.
  bool wholeTensors = !isLocal(*entry);
  Lockstep lockstep(*mesh, wholeTensors, options.mode);
  int64_t microBatches = wholeTensors
                             ? 1
                             : MeshPoint{*mesh}
                                   .getAxisSize(dist::MeshOp::kMicroBatchAxis)
                                   .value_or(1);
  std::vector<Assembly> assemblies;
  for (const Binding &binding : bindings->results)
    assemblies.emplace_back(binding.placement, binding.element);
  if (entry->isExternal()) {
    dist::ScheduleOp schedule = findSchedule(*entry);
    if (!schedule)
      return entry->emitOpError() << "expected a schedule that runs it";
    if (failed(evaluateSchedule(schedule, *entry, *bindings, arguments,
                                lockstep, *mesh, assemblies)))
      return failure();
    microBatches = 0; // all done
  }
  for (int64_t batch = 0; batch < microBatches; ++batch) {
    SmallVector<GroupTensors> pieces, results;
    for (auto [binding, tensor] : llvm::zip(bindings->arguments, arguments)) {
      GroupTensors &group = pieces.emplace_back();
      for (int64_t rank = 0; rank < lockstep.getRankCount(); ++rank)
        group.push_back(binding.placement.cut(tensor, {*mesh, rank, batch}));
    }
    lockstep.setMicroBatch(batch);
    if (failed(lockstep.call(*entry, pieces, results)))
      return failure();
    for (size_t index = 0; index < results.size(); ++index)
      for (int64_t rank = 0; rank < lockstep.getRankCount(); ++rank)
        if (failed(assemblies[index].add(
                results[index][rank], {*mesh, rank, batch}, loc,
                "'" + bindings->results[index].name + "'")))
          return failure();
  }
  for (auto [binding, assembly] : llvm::zip(bindings->results, assemblies)) {
    FailureOr<Tensor> tensor = assembly.finish(loc, "'" + binding.name + "'");
    if (failed(tensor))
      return failure();
    outputs[binding.name] = *tensor;
  }
  return success();
}

LogicalResult evaluate::evaluateModule(ModuleOp module,
                                       const TensorsByName &inputs,
                                       const InterpreterOptions &options,
                                       TensorsByName &outputs) {
  return isPlan(module) ? evaluatePlan(module, inputs, options, outputs)
                        : evaluateEntry(module, inputs, options, outputs);
}

double evaluate::getMaxDifference(const Tensor &found, const Tensor &expected) {
  double largest = 0;
  for (int64_t i = 0; i < expected.getNumElements(); ++i) {
    double x = found.asDouble(i), y = expected.asDouble(i);
    if (x == y || (std::isnan(x) && std::isnan(y)))
      continue;
    double difference = std::abs(x - y) / (1 + std::abs(y));
    largest = std::isnan(difference) ? INFINITY : std::max(largest, difference);
  }
  return largest;
}

void evaluate::sumTerms(ModuleOp module, TensorsByName &outputs) {
  for (auto state : module.getOps<nn::StateOp>()) {
    auto found = outputs.find(("@" + state.getSymName()).str());
    if (state.getRole() != nn::StateRole::residual || found == outputs.end())
      continue;
    Tensor terms = found->second;
    SmallVector<int64_t> shape(terms.getShape());
    shape.front() = 1;
    Tensor sum(shape, terms.getElementType());
    int64_t size = sum.getNumElements();
    for (int64_t at = 0; at < terms.getNumElements(); ++at)
      sum.mutableFloats()[at % size] += terms.floats()[at];
    found->second = sum;
  }
}
