// Entry of the import: binds dimensions, declares states, imports the graph's
// nodes, and returns its outputs.

#include "Import.h"

#include "BindDims.h"
#include "GraphImporter.h"
#include "Tensors.h"
#include "TrainedNorms.h"
#include "UndoSteps.h"
#include "dialects/Accel/Accel.h"
#include "dialects/NN/Calls.h"
#include "dialects/NN/NN.h"
#include "lib/Onnx/DoubtGroups.h"
#include "lib/Onnx/Payload.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Verifier.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace accel;
using namespace accel::import;

namespace {

class ModelImporter {
public:
  ModelImporter(const onnxio::OnnxFile &file,
                const onnxio::ParameterTable &table, ImportOptions options,
                MLIRContext *context)
      : file(file), table(table), options(std::move(options)), context(context),
        builder(context) {}

  OwningOpRef<ModuleOp> run();

private:
  FailureOr<RankedTensorType> inputType(const onnx::ValueInfoProto &input);
  FailureOr<DenseElementsAttr> inputValue(const onnx::ValueInfoProto &input,
                                          DenseElementsAttr value);
  LogicalResult declareStates(ModuleOp module);
  FailureOr<nn::StateOp> declareState(const onnxio::Parameter &parameter);
  LogicalResult declareBuffers(ModuleOp module, const TrainedNorms &norms);
  LogicalResult reportDoubts();
  LogicalResult checkTrainable();
  void describeTraining(ModuleOp module, bool losesStops);
  LogicalResult checkOutput(const onnx::ValueInfoProto &output, Value value);
  Location nameLoc(StringRef name) {
    return NameLoc::get(builder.getStringAttr(name));
  }

  const onnxio::OnnxFile &file;
  const onnxio::ParameterTable &table;
  ImportOptions options;
  MLIRContext *context;
  OpBuilder builder;
  /// The states declared, by number in the table, in its order.
  SmallVector<std::pair<unsigned, nn::StateOp>> states;
  SmallVector<nn::StateOp> buffers;
};

} // namespace

FailureOr<RankedTensorType>
ModelImporter::inputType(const onnx::ValueInfoProto &input) {
  Location loc = file.location();
  if (!input.type().has_tensor_type())
    return emitError(loc) << "expected input '" << input.name()
                          << "' to be a tensor";
  const onnx::TypeProto::Tensor &tensor = input.type().tensor_type();
  Type element = elementType(tensor.elem_type(), context);
  if (!element)
    return emitError(loc) << "element type '"
                          << onnxio::elementTypeName(tensor.elem_type())
                          << "' of input '" << input.name()
                          << "' is not supported";
  if (!tensor.has_shape())
    return emitError(loc) << "expected a shape of input '" << input.name()
                          << "', found none";
  SmallVector<int64_t> shape;
  for (auto [index, dim] : llvm::enumerate(tensor.shape().dim())) {
    if (dim.has_dim_value()) {
      if (dim.dim_value() < 0)
        return emitError(loc)
               << "expected a size of dimension #" << index << " of input '"
               << input.name() << "', found " << dim.dim_value();
      shape.push_back(dim.dim_value());
      continue;
    }
    auto bound = options.dims.find(dim.dim_param());
    if (dim.dim_param().empty())
      return emitError(loc) << "dimension #" << index << " of input '"
                            << input.name() << "' has neither size nor name";
    assert(bound != options.dims.end() && "checkBound refuses it");
    shape.push_back(bound->second);
  }
  auto type = RankedTensorType::get(shape, computeType(element, options.f64));
  if (!isAddressable(shape))
    return emitError(loc) << "expected an input '" << input.name()
                          << "' whose elements can be addressed, found "
                          << type;
  return type;
}

/// The value of an input that is known, which must have its type.
FailureOr<DenseElementsAttr>
ModelImporter::inputValue(const onnx::ValueInfoProto &input,
                          DenseElementsAttr value) {
  FailureOr<RankedTensorType> type = inputType(input);
  if (failed(type))
    return failure();
  if (auto wide = dyn_cast<FloatType>(type->getElementType());
      wide && options.f64 && isa<FloatType>(value.getElementType()))
    value =
        cast<DenseFPElementsAttr>(value).mapValues(wide, [&](APFloat number) {
          bool isInexact;
          number.convert(wide.getFloatSemantics(), APFloat::rmNearestTiesToEven,
                         &isInexact);
          return number.bitcastToAPInt();
        });
  if (value.getType() != ShapedType(*type))
    return emitError(file.location())
           << "expected a value of type " << *type << " for input '"
           << input.name() << "', found " << value.getType();
  return value;
}

FailureOr<nn::StateOp>
ModelImporter::declareState(const onnxio::Parameter &parameter) {
  Location loc = nameLoc(parameter.name);
  Type stored = elementType(parameter.dtype, context);
  if (!stored)
    return emitError(file.location())
           << "element type '" << onnxio::elementTypeName(parameter.dtype)
           << "' of parameter '" << parameter.name << "' is not supported";
  // What loads a state widens 16 bits, and reads whole bytes.
  bool isOctet = stored.getIntOrFloatBitWidth() <= 8;
  if (stored.getIntOrFloatBitWidth() < 8 && !stored.isInteger(1))
    return emitError(file.location())
           << "expected a type that takes whole bytes for parameter '"
           << parameter.name << "', found '"
           << onnxio::elementTypeName(parameter.dtype)
           << "'; in what is no parameter (a constant) it is read";
  Type element = computeType(stored, options.f64);
  auto type = RankedTensorType::get(parameter.shape, element);
  SmallVector<Attribute> initializers;
  for (const onnxio::ParameterInitializer &each : parameter.initializers)
    initializers.push_back(nn::InitializerAttr::get(
        context, each.initializer,
        llvm::is_sorted(each.permutation) ? ArrayRef<int64_t>()
                                          : ArrayRef(each.permutation)));
  // One of the state's own name says nothing.
  if (initializers.size() == 1 &&
      initializers.front() ==
          nn::InitializerAttr::get(context, parameter.name, {}))
    initializers.clear();
  // The value's own layout is read if the file has it: a transposed read at
  // load costs strided access.
  const onnxio::ParameterInitializer *source = nullptr;
  for (const onnxio::ParameterInitializer &each : parameter.initializers)
    if (!source || (!llvm::is_sorted(source->permutation) &&
                    llvm::is_sorted(each.permutation)))
      source = &each;
  Attribute init;
  TypeAttr storedAs;
  if (!source) {
    init = splatValue(parameter.shape, element, 0.0);
  } else {
    const onnx::TensorProto *tensor = file.findInitializer(source->initializer);
    if (!tensor)
      return emitError(file.location())
             << "no initializer called '" << source->initializer
             << "', which holds parameter '" << parameter.name << "'";
    const onnxio::Payload &payload = file.payload(*tensor);
    bool identity = llvm::is_sorted(source->permutation);
    bool isComputed =
        llvm::any_of(parameter.steps, [](const onnxio::ParameterStep &step) {
          return step.kind != onnxio::ParameterStep::Reshape;
        });
    if (payload.byReference && !isComputed && (stored == element || !isOctet)) {
      std::optional<uint64_t> hash;
      if (options.hashWeights || !payload.isExternal)
        hash = onnxio::hashBytes(file.values(*tensor));
      init = nn::RangeAttr::get(
          context, nn::FileAttr::get(context, payload.path), payload.offset,
          payload.bytes, hash,
          identity ? ArrayRef<int64_t>() : ArrayRef(source->permutation));
      if (stored != element)
        storedAs = TypeAttr::get(stored);
    } else {
      DenseElementsAttr value =
          tensorValue(file, *tensor, options.f64, file.location());
      if (!value)
        return failure();
      init = identity ? value : transposeBack(value, source->permutation);
      for (const onnxio::ParameterStep &step : llvm::reverse(parameter.steps))
        init = undoStep(step, cast<DenseElementsAttr>(init), parameter.shape,
                        element);
    }
  }
  SmallVector<StringRef> aliases(parameter.aliases.begin(),
                                 parameter.aliases.end());
  return nn::StateOp::create(
      builder, loc, parameter.name, type, init,
      aliases.empty() ? ArrayAttr() : builder.getStrArrayAttr(aliases),
      initializers.empty() ? ArrayAttr() : builder.getArrayAttr(initializers),
      storedAs, /*logical=*/nullptr,
      /*frozen=*/options.forTraining && !parameter.trained);
}

static std::string quoted(ArrayRef<std::string> names) {
  std::string text;
  for (const std::string &name : names)
    text += (text.empty() ? "'" : ", '") + name + "'";
  return text;
}

LogicalResult ModelImporter::declareStates(ModuleOp module) {
  builder.setInsertionPointToEnd(module.getBody());
  llvm::SmallDenseSet<unsigned> used;
  for (const auto &[place, use] : table.uses)
    used.insert(use.parameter);
  if (options.forTraining)
    for (const onnxio::RestoredOperand &each : table.restored)
      if (table.parameters[each.parameter].hasShape)
        used.insert(each.parameter);
  for (auto [number, parameter] : llvm::enumerate(table.parameters)) {
    // A declared parameter that nothing uses is saved with the others.
    if (!used.contains(number) && parameter.initializers.empty())
      continue;
    FailureOr<nn::StateOp> state = declareState(parameter);
    if (failed(state))
      return failure();
    states.emplace_back(number, *state);
  }
  return success();
}

/// Running statistics are kept as buffers are: with the weights.
LogicalResult ModelImporter::declareBuffers(ModuleOp module,
                                            const TrainedNorms &norms) {
  builder.setInsertionPointToEnd(module.getBody());
  for (const auto &[name, tensor] : norms.statistics) {
    onnxio::Parameter buffer;
    buffer.name = name;
    buffer.shape.assign(tensor->dims().begin(), tensor->dims().end());
    buffer.dtype = tensor->data_type();
    buffer.initializers.push_back(
        {tensor->name(),
         llvm::to_vector<4>(llvm::seq<int64_t>(0, tensor->dims_size()))});
    FailureOr<nn::StateOp> state = declareState(buffer);
    if (failed(state))
      return failure();
    state->setRole(nn::StateRole::buffer);
    state->setFrozen(false);
    buffers.push_back(*state);
  }
  return success();
}

/// One error for each way in which the file does not tell what the user wrote.
LogicalResult ModelImporter::reportDoubts() {
  bool isRefused = false;
  for (const onnxio::DoubtGroup &group : onnxio::groupDoubts(table.doubts)) {
    const onnxio::Doubt &doubt = *group.first;
    bool isFolded = doubt.kind == onnxio::Doubt::Folded;
    Location loc = doubt.node ? file.location(*doubt.node) : file.location();
    if (doubt.kind == onnxio::Doubt::Possible) {
      emitWarning(loc) << group.message() << ": " << table.exportRemedy
                       << " to be sure";
      continue;
    }
    if (isFolded && options.allowFolded) {
      // What has names is told with them once all is imported.
      if (group.parameters.empty())
        emitWarning(loc) << group.message()
                         << "; it is held constant: " << table.exportRemedy
                         << " to train it";
      continue;
    }
    isRefused = true;
    InFlightDiagnostic error = emitError(loc) << group.message();
    if (!isFolded && !group.parameters.empty())
      error << ", and gradients of " << onnxio::quoteFew(group.parameters)
            << " depend on it";
    error << "; "
          << (doubt.remedy.empty() ? table.exportRemedy
                                   : StringRef(doubt.remedy));
    if (isFolded && !group.parameters.empty())
      error << ", or hold " << onnxio::quoteFew(group.parameters)
            << " constant with --allow-folded";
  }
  return failure(isRefused);
}

/// Refuses to guess what is a parameter, and to train something else than the
/// user wrote.
LogicalResult ModelImporter::checkTrainable() {
  if (options.forTraining && failed(reportDoubts()))
    return failure();
  if (options.forTraining && !table.undecided.empty())
    return emitError(file.location())
           << "initializers " << quoted(table.undecided)
           << " may be parameters or constants, neither name nor use tells: "
              "say --trainable=PATTERN or --frozen=PATTERN";
  if (options.forTraining && !table.besideAdapters.empty())
    return emitError(file.location())
           << "parameters " << onnxio::quoteFew(table.besideAdapters)
           << " stand beside low-rank adapters (of '" << table.adaptedModule
           << "'), and whether they are trained no file of torch.onnx.export "
              "tells: say --frozen='*' --trainable='*lora_*' to train the "
              "adapters alone, or --trainable=PATTERN of what else is, or "
              "export with acc-export, which keeps requires_grad";
  return success();
}

/// Says what the module lacks of the user's program.
void ModelImporter::describeTraining(ModuleOp module, bool losesStops) {
  std::vector<std::string> folded, lost;
  SmallVector<Attribute> entries;
  for (const onnxio::Parameter &parameter : table.parameters) {
    bool removed = parameter.kind == onnxio::ParameterKind::Removed;
    if (removed && (!options.forTraining || !parameter.hasShape))
      lost.push_back(parameter.name);
    bool unknown = removed && !parameter.hasShape;
    if (parameter.kind != onnxio::ParameterKind::FoldedAway && !unknown)
      continue;
    folded.push_back(parameter.name);
    SmallVector<NamedAttribute> entry{
        builder.getNamedAttr("name", builder.getStringAttr(parameter.name))};
    if (parameter.hasShape)
      entry.push_back(builder.getNamedAttr(
          "shape", builder.getDenseI64ArrayAttr(parameter.shape)));
    entries.push_back(builder.getDictionaryAttr(entry));
  }
  if (!entries.empty())
    module->setAttr(kFoldedParametersAttr, builder.getArrayAttr(entries));
  if (!options.forTraining) {
    SmallVector<std::string> reasons;
    for (const onnxio::Doubt &doubt : table.doubts)
      if (doubt.kind != onnxio::Doubt::Possible) {
        reasons.push_back(doubt.message);
        break;
      }
    if (!lost.empty())
      reasons.push_back("its removed zero biases " + quoted(lost) +
                        " are not in it");
    if (!table.undecided.empty())
      reasons.push_back("initializers " + quoted(table.undecided) +
                        " may be parameters");
    if (losesStops)
      reasons.push_back("where it stops gradients is not in it");
    if (!reasons.empty())
      module->setAttr(kUntrainableAttr,
                      builder.getStringAttr(llvm::join(reasons, ", and ") +
                                            "; give the model itself with "
                                            "--train"));
    return;
  }
  std::vector<std::string> held;
  for (const onnxio::Doubt &doubt : table.doubts)
    for (const std::string &name : doubt.parameters)
      if (!llvm::is_contained(held, name))
        held.push_back(name);
  if (!held.empty())
    emitWarning(file.location())
        << "parameters " << quoted(held)
        << " were folded by the exporter and are held constant: "
        << table.exportRemedy << " to train them";
  llvm::erase_if(folded, [&](const std::string &name) {
    return llvm::is_contained(held, name);
  });
  if (!folded.empty())
    emitWarning(file.location())
        << "parameters " << quoted(folded)
        << " are in no initializer, and saved weights will lack them but for "
           "--original-weights: nothing uses them, or --frozen names what the "
           "exporter folded";
  for (const std::string &note : table.notes)
    emitWarning(file.location()) << note;
}

LogicalResult ModelImporter::checkOutput(const onnx::ValueInfoProto &output,
                                         Value value) {
  if (!output.type().has_tensor_type() ||
      !output.type().tensor_type().has_shape())
    return success();
  const auto &declared = output.type().tensor_type().shape();
  auto type = cast<RankedTensorType>(value.getType());
  auto fail = [&] {
    return emitError(file.location())
           << "output '" << output.name() << "' has type " << type
           << ", but the file declares ";
  };
  if (declared.dim_size() != type.getRank())
    return fail() << declared.dim_size() << " dimensions";
  for (auto [index, dim] : llvm::enumerate(declared.dim())) {
    std::optional<int64_t> size;
    if (dim.has_dim_value())
      size = dim.dim_value();
    else if (auto it = options.dims.find(dim.dim_param());
             it != options.dims.end())
      size = it->second;
    if (size && *size != type.getDimSize(index))
      return fail() << "size " << *size << " of dimension #" << index;
  }
  return success();
}

OwningOpRef<ModuleOp> ModelImporter::run() {
  OwningOpRef<ModuleOp> module = ModuleOp::create(file.location());
  setPhase(*module, Phase::NN);
  if (failed(checkTrainable()) || failed(declareStates(*module)))
    return nullptr;
  FailureOr<TrainedNorms> norms = findTrainedNorms(file, table, options);
  if (failed(norms) || failed(declareBuffers(*module, *norms)))
    return nullptr;

  SmallVector<Type> types;
  SmallVector<Location> locations;
  SmallVector<DictionaryAttr> attributes;
  for (const onnx::ValueInfoProto *input : file.inputs()) {
    if (options.values.contains(input->name()))
      continue;
    FailureOr<RankedTensorType> type = inputType(*input);
    if (failed(type))
      return nullptr;
    types.push_back(*type);
    locations.push_back(nameLoc(input->name()));
    attributes.push_back(builder.getDictionaryAttr(builder.getNamedAttr(
        nn::kInputAttr, builder.getStringAttr(input->name()))));
  }
  auto addState = [&](nn::StateOp state) {
    types.push_back(state.getType());
    locations.push_back(state.getLoc());
    attributes.push_back(builder.getDictionaryAttr(builder.getNamedAttr(
        nn::kStateAttr, FlatSymbolRefAttr::get(state.getSymNameAttr()))));
  };
  llvm::for_each(llvm::make_second_range(states), addState);
  llvm::for_each(buffers, addState);
  auto function = func::FuncOp::create(builder, file.location(), "main",
                                       builder.getFunctionType(types, {}));
  function->setAttr(nn::kEntryAttr, builder.getUnitAttr());
  function.setAllArgAttrs(attributes);
  Block *block = builder.createBlock(&function.getBody(), {}, types, locations);

  GraphImporter importer(file, table, options, builder);
  if (options.forTraining)
    for (const onnxio::RestoredOperand &each : table.restored)
      if (table.parameters[each.parameter].hasShape)
        importer.restored[each.node].push_back(&each);
  unsigned argument = 0;
  for (const onnx::ValueInfoProto *input : file.inputs()) {
    auto known = options.values.find(input->name());
    if (known == options.values.end()) {
      importer.define(input->name(),
                      ImportedValue::of(block->getArgument(argument++)));
      continue;
    }
    FailureOr<DenseElementsAttr> value = inputValue(*input, known->second);
    if (failed(value))
      return nullptr;
    importer.define(input->name(),
                    ImportedValue::of(nn::ConstantOp::create(
                        builder, nameLoc(input->name()), *value)));
  }
  for (auto &[number, state] : states)
    importer.states[number] = block->getArgument(argument++);
  for (const auto &[place, number] : norms->uses)
    importer.runningStatistics[place] = block->getArgument(argument + number);
  if (failed(importer.importNodes(file.graph())))
    return nullptr;
  bool isGuarded =
      importer.choices.guardGradients(options.forTraining ? &builder : nullptr);
  importer.stopsGradients |= isGuarded && !options.forTraining;

  SmallVector<Value> results;
  SmallVector<DictionaryAttr> names;
  for (const onnx::ValueInfoProto &output : file.graph().output()) {
    const ImportedValue *value =
        importer.lookup(output.name(), file.location());
    if (!value)
      return nullptr;
    if (value->isSequence || !value->tensor) {
      emitError(file.location())
          << "expected output '" << output.name() << "' to be a tensor";
      return nullptr;
    }
    if (importer.choices.find(value->tensor) ||
        importer.choices.findGrouped(value->tensor) ||
        importer.choices.isSize(value->tensor)) {
      emitError(file.location())
          << "expected output '" << output.name()
          << "' to have a size that is known at compile time, found one of the "
             "elements that NonZero chooses at run time";
      return nullptr;
    }
    if (failed(checkOutput(output, value->tensor)))
      return nullptr;
    results.push_back(value->tensor);
    names.push_back(builder.getDictionaryAttr(builder.getNamedAttr(
        nn::kOutputAttr, builder.getStringAttr(output.name()))));
  }
  if (options.marksCalls) {
    NamedAttrList calls;
    for (const auto &call : importer.calls)
      calls.append(call.first(), builder.getStringAttr(call.second));
    (*module)->setAttr(nn::kCallsAttr, calls.getDictionary(context));
  }
  func::ReturnOp::create(builder, file.location(), results);
  function.setType(
      builder.getFunctionType(types, ValueRange(results).getTypes()));
  function.setAllResultAttrs(names);
  // Constants and shape arithmetic that folding left without a use.
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(*block)))
    if (!op.hasTrait<OpTrait::IsTerminator>() && op.use_empty() && isPure(&op))
      op.erase();
  if (failed(verify(*module)))
    return nullptr;
  describeTraining(*module, importer.stopsGradients);
  return module;
}

/// Binds the named dimensions of inputs whose values are known. Errors: values
/// of what is no input.
static LogicalResult bindValues(const onnxio::OnnxFile &file,
                                ImportOptions &options) {
  llvm::StringSet<> found;
  for (const onnx::ValueInfoProto *input : file.inputs()) {
    auto known = options.values.find(input->name());
    if (known == options.values.end())
      continue;
    found.insert(input->name());
    const auto &dims = input->type().tensor_type().shape().dim();
    ArrayRef<int64_t> shape = known->second.getType().getShape();
    for (auto [dim, size] : llvm::zip(dims, shape))
      if (!dim.has_dim_value() && !dim.dim_param().empty())
        options.dims.try_emplace(dim.dim_param(), size);
  }
  for (const auto &value : options.values)
    if (!found.contains(value.first()))
      return emitError(file.location())
             << "cannot bind '" << value.first()
             << "': the model has no input of that name";
  return success();
}

OwningOpRef<ModuleOp>
accel::import::importOnnx(const onnxio::OnnxFile &file,
                          const onnxio::ParameterTable &table,
                          const ImportOptions &given, MLIRContext *context) {
  context->loadDialect<AccelDialect, nn::NNDialect, func::FuncDialect>();
  ImportOptions options = given;
  if (failed(checkDims(file, options)) || failed(bindValues(file, options)))
    return nullptr;
  ImportOptions bound =
      bindDims(file, options, context, [&](const ImportOptions &attempt) {
        return static_cast<bool>(
            ModelImporter(file, table, attempt, context).run());
      });
  if (failed(checkBound(file, bound)))
    return nullptr;
  return ModelImporter(file, table, bound, context).run();
}
