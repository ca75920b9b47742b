// Fills the structs of the executable format from a plan module and writes
// them.

#include "WriteExecutable.h"

#include "ConvertCommands.h"
#include "accel-rt/FeatureFormat.h"
#include "accel-rt/SectionFormat.h"
#include "dialects/Accel/Accel.h"
#include "dialects/Accel/Reports.h"
#include "dialects/Accel/SeparateRows.h"
#include "dialects/Dist/Dist.h"
#include "dialects/NN/NN.h"
#include "dialects/Plan/Storage.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

#include <deque>
#include <filesystem>
#include <map>

using namespace mlir;
using namespace accel;
using namespace accel::emit;

namespace {
class Emitter {
public:
  Emitter(ModuleOp module, ArrayRef<Compiled> engines, StringRef outputPath,
          bool embedWeights)
      : module(module), engines(engines), outputPath(outputPath),
        embedWeights(embedWeights) {}

  LogicalResult run(ArrayRef<std::pair<std::string, std::string>> phaseTexts);

private:
  LogicalResult addCode();
  LogicalResult addMesh();
  LogicalResult addProgram(plan::ProgramOp op);
  LogicalResult addBuffer(plan::BufferOp op, rt::Program &program,
                          SymbolTableCollection &symbols);
  LogicalResult addTransfer(Operation *op, const rt::Command &command);
  LogicalResult addState(nn::StateOp op);
  LogicalResult addFirstValue(nn::StateOp op, rt::FirstValue &first);
  LogicalResult addWeights(nn::StateOp op, nn::RangeAttr file,
                           rt::FirstValue &first);
  LogicalResult embed(nn::StateOp op, nn::RangeAttr file, rt::DType stored,
                      rt::FirstValue &first);
  void addRows(nn::StateOp op, const rt::StatePlan &state);
  LogicalResult share(Operation *op, const rt::ReadCommand &read);
  LogicalResult addModuleAttributes();
  LogicalResult addReports();
  FailureOr<std::string> relativePath(Location loc, StringRef path);

  /// Adds a section; `bytes` is kept until the file is written.
  void addSection(std::string name, std::string bytes,
                  rt::DType dtype = rt::DType::UI8,
                  std::vector<int64_t> shape = {});

  ModuleOp module;
  ArrayRef<Compiled> engines; ///< the first is the file's own
  std::string outputPath;
  bool embedWeights;
  rt::Executable executable;
  std::vector<rt::SectionData> sections;
  std::vector<rt::FileSection> fromFiles;
  /// The sections that are copies of ranges: path, offset, bytes, and the
  /// index.
  std::map<std::tuple<std::string, uint64_t, uint64_t>, size_t> copied;
  std::deque<std::string> storage;     // strings that do not move
  llvm::StringSet<> keptStates;        ///< that ranks have buffers of
  llvm::StringMap<nn::StateOp> stacks; ///< by their own names
  /// Of each member its stack, and which row of that it is.
  llvm::StringMap<std::pair<nn::StateOp, int64_t>> members;
};
} // namespace

void Emitter::addSection(std::string name, std::string bytes, rt::DType dtype,
                         std::vector<int64_t> shape) {
  const std::string &kept = storage.emplace_back(std::move(bytes));
  if (dtype == rt::DType::UI8 && shape.empty())
    shape = {static_cast<int64_t>(kept.size())};
  sections.push_back(
      {std::move(name), dtype, std::move(shape), kept.data(), kept.size()});
}

/// What each engine's code needs of the machine, and its sections.
LogicalResult Emitter::addCode() {
  executable.target = engines.front().target->getText();
  llvm::StringSet<> names;
  for (const auto &[target, code] : engines) {
    bool isOwn = target == engines.front().target;
    std::string engine = plan::stringifyEngine(target->getEngine()).str();
    for (const std::string &feature : code.features)
      executable.features.push_back(isOwn ? feature
                                          : rt::featureOf(engine, feature));
    for (const Code::Section &section : code.sections) {
      if (!names.insert(section.name).second)
        return module.emitError()
               << "expected one section of code called '" << section.name
               << "', found one more, of engine '" << engine << "'";
      addSection(rt::kCodePrefix + section.name, section.bytes);
    }
  }
  return success();
}

LogicalResult
Emitter::run(ArrayRef<std::pair<std::string, std::string>> phaseTexts) {
  if (failed(addMesh()) || failed(addModuleAttributes()))
    return failure();
  module.walk([&](plan::BufferOp buffer) {
    if (buffer.getRole() == plan::Role::state && buffer.getSource())
      keptStates.insert(*buffer.getSource());
  });
  for (auto stack : module.getOps<nn::StateOp>())
    for (auto [row, member] : llvm::enumerate(stack.getMembers())) {
      stacks[stack.getSymName()] = stack;
      members[member.getValue()] = {stack, row};
    }
  for (auto state : module.getOps<nn::StateOp>())
    if (failed(addState(state)))
      return failure();
  for (auto program : module.getOps<plan::ProgramOp>())
    if (failed(addProgram(program)))
      return failure();
  if (failed(addReports()))
    return failure();
  if (failed(addCode()))
    return failure();
  for (const auto &[phase, text] : phaseTexts)
    addSection("ir:" + phase, text);
  rt::Status status = rt::writeExecutableFile(std::move(executable), sections,
                                              fromFiles, outputPath);
  if (!status.ok())
    return emitError(UnknownLoc::get(module.getContext())) << status.message();
  return success();
}

LogicalResult Emitter::addMesh() {
  auto meshes = module.getOps<dist::MeshOp>();
  if (meshes.empty())
    return success();
  if (!llvm::hasSingleElement(meshes))
    return (*std::next(meshes.begin())).emitOpError()
           << "expected one mesh in an executable";
  for (auto axis : (*meshes.begin()).getAxes().getAsRange<dist::AxisAttr>())
    if (axis.getName() == dist::MeshOp::kMicroBatchAxis)
      executable.microBatches = axis.getSize();
    else
      executable.mesh.push_back({axis.getName().str(), axis.getSize()});
  return success();
}

/// The inputs that an attribute says to have rows, and those that must not.
static rt::SeparateRows readRows(DictionaryAttr attribute) {
  rt::SeparateRows rows;
  for (auto input :
       attribute.getAs<ArrayAttr>("inputs").getAsRange<StringAttr>())
    rows.inputs.push_back(input.str());
  for (auto one :
       attribute.getAs<ArrayAttr>("equal").getAsRange<DictionaryAttr>())
    rows.equal.push_back({one.getAs<StringAttr>("input").str(),
                          one.getAs<IntegerAttr>("dim").getInt()});
  return rows;
}

LogicalResult Emitter::addModuleAttributes() {
  if (auto seed = module->getAttrOfType<IntegerAttr>(kSeedAttr))
    executable.seed = seed.getInt();
  if (auto labels = module->getAttrOfType<StringAttr>(kUnshiftedLabelsAttr))
    executable.unshiftedLabels = labels.str();
  if (auto mask = module->getAttrOfType<DictionaryAttr>(kRowMaskAttr))
    executable.rowMask = {mask.getAs<StringAttr>("input").str(),
                          readRows(mask)};
  if (auto rows = module->getAttrOfType<DictionaryAttr>(kSeparateRowsAttr)) {
    rt::SeparateRows &separate =
        executable.separateRows.emplace(readRows(rows));
    separate.ignored =
        rows.getAs<DenseI64ArrayAttr>("ignored").asArrayRef().vec();
    for (auto one :
         rows.getAs<ArrayAttr>("terms").getAsRange<DictionaryAttr>()) {
      rt::LossTerm &term = separate.terms.emplace_back();
      term.numerator = one.getAs<StringAttr>("numerator").str();
      if (auto denominator = one.getAs<StringAttr>("denominator"))
        term.denominator = denominator.str();
      if (auto plus = one.getAs<FloatAttr>("plus"))
        term.plus = plus.getValueAsDouble();
      if (auto least = one.getAs<FloatAttr>("least"))
        term.least = least.getValueAsDouble();
    }
  }
  auto folded = module->getAttrOfType<ArrayAttr>(kFoldedParametersAttr);
  if (!folded)
    return success();
  for (auto parameter : folded.getAsRange<DictionaryAttr>()) {
    rt::FoldedParameter &entry = executable.folded.emplace_back();
    entry.name = parameter.getAs<StringAttr>("name").str();
    if (auto shape = parameter.getAs<DenseI64ArrayAttr>("shape"))
      entry.shape = shape.asArrayRef().vec();
  }
  return success();
}

/// Reports are outputs, whose types are known once programs are there.
LogicalResult Emitter::addReports() {
  auto names = module->getAttrOfType<ArrayAttr>(kReportsAttr);
  if (!names)
    return success();
  for (StringRef name : names.getAsValueRange<StringAttr>()) {
    auto output =
        llvm::find_if(executable.outputs, [&](const rt::TensorPlan &tensor) {
          return tensor.name == name;
        });
    if (output == executable.outputs.end())
      return module.emitError()
             << "expected an output '" << name << "', which '" << kReportsAttr
             << "' lists, found none";
    executable.reports.push_back({output->name, output->dtype});
  }
  return success();
}

FailureOr<std::string> Emitter::relativePath(Location loc, StringRef path) {
  // Both folders as they are on disk: a relative path between links would lead
  // elsewhere. The file's own name is kept.
  // Weights, and their folder, may be absent.
  auto realFolder = [&](StringRef file) -> FailureOr<std::string> {
    std::error_code error;
    std::filesystem::path folder(llvm::sys::path::parent_path(file).str());
    folder = std::filesystem::weakly_canonical(
        folder.empty() ? std::filesystem::path(".") : folder, error);
    if (error)
      return emitError(loc) << "cannot find the folder of '" << file
                            << "': " << error.message();
    return folder.string();
  };
  FailureOr<std::string> from = realFolder(outputPath), to = realFolder(path);
  if (failed(from) || failed(to))
    return failure();
  std::filesystem::path target(*to);
  target /= llvm::sys::path::filename(path).str();
  return target.lexically_relative(*from).string();
}

/// Makes of what is said of a stack what is to be said of one of its rows.
static void putInStack(rt::StatePlan &state, StringRef stack, int64_t row) {
  state.inStack = {stack.str(), row, state.shape.front(), {}};
  state.shape.erase(state.shape.begin());
  if (!state.logicalShape.empty())
    state.logicalShape.erase(state.logicalShape.begin());
  if (state.logicalShape == state.shape)
    state.logicalShape.clear();
}

LogicalResult Emitter::addState(nn::StateOp op) {
  if (stacks.contains(op.getSymName()))
    return success(); // its members stand for it
  auto member = members.find(op.getSymName());
  nn::StateOp kept = member == members.end() ? op : member->second.first;
  auto type = cast<RankedTensorType>(kept.getType());
  FailureOr<rt::DType> dtype = convertType(op.getLoc(), type.getElementType());
  if (failed(dtype))
    return failure();
  rt::StatePlan state;
  state.name = op.getSymName().str();
  if (auto aliases = op.getAliases())
    for (auto alias : aliases->getAsRange<StringAttr>())
      state.aliases.push_back(alias.str());
  state.dtype = *dtype;
  state.shape.assign(type.getShape().begin(), type.getShape().end());
  if (RankedTensorType logical = kept.getLogicalType(); logical != type)
    state.logicalShape = logical.getShape().vec();
  state.role = nn::stringifyStateRole(op.getRole()).str();
  // What no rank keeps is never written: a parameter that the loss does not
  // depend on.
  state.frozen = op.getFrozen() || !keptStates.contains(kept.getSymName());
  if (failed(addFirstValue(op, state.first)))
    return failure();
  if (kept != op)
    putInStack(state, kept.getSymName(), member->second.second);
  addRows(op, state);
  return success();
}

/// Adds a state, of a moment of a stack those of the members.
void Emitter::addRows(nn::StateOp op, const rt::StatePlan &state) {
  auto [kind, name] = op.getSymName().split('/');
  nn::StateOp stack = op.getRole() == nn::StateRole::moment
                          ? stacks.lookup(name)
                          : nn::StateOp();
  if (!stack) {
    executable.states.push_back(state);
    return;
  }
  for (auto [row, member] : llvm::enumerate(stack.getMembers())) {
    rt::StatePlan &own = executable.states.emplace_back(state);
    own.name = (kind + "/" + member.getValue()).str();
    putInStack(own, op.getSymName(), row);
  }
}

LogicalResult Emitter::addWeights(nn::StateOp op, nn::RangeAttr file,
                                  rt::FirstValue &first) {
  Type element = op.getLogicalType().getElementType();
  FailureOr<rt::DType> stored =
      convertType(op.getLoc(), op.getStored().value_or(element));
  if (failed(stored))
    return failure();
  first.bytes = file.getBytes();
  first.permutation = file.getPermutation().vec();
  if (op.getStored() && *op.getStored() != element)
    first.stored = *stored;
  if (embedWeights)
    return embed(op, file, *stored, first);
  FailureOr<std::string> path = relativePath(op.getLoc(), file.getPath());
  if (failed(path))
    return failure();
  first.path = *path;
  first.offset = file.getOffset();
  first.hash = file.getHash();
  return success();
}

/// Names a section that will be a copy of what `file` has, of which there is
/// one for all states that have their first value there.
LogicalResult Emitter::embed(nn::StateOp op, nn::RangeAttr file,
                             rt::DType stored, rt::FirstValue &first) {
  auto [known, isNew] = copied.try_emplace(
      {file.getPath().str(), file.getOffset(), file.getBytes()},
      fromFiles.size());
  if (isNew) {
    rt::FileSection section;
    section.name = "state:" + op.getSymName().str();
    section.dtype = stored;
    section.path = file.getPath().str();
    section.offset = file.getOffset();
    section.bytes = file.getBytes();
    // As it lies in the file: dimension d of that is permutation[d] of the
    // state.
    ArrayRef<int64_t> shape = op.getLogicalType().getShape();
    section.shape = shape.vec();
    for (auto [d, dim] : llvm::enumerate(file.getPermutation()))
      section.shape[d] = shape[dim];
    rt::Status status = rt::hashSection(section);
    if (!status.ok())
      return emitError(op.getLoc()) << status.message();
    if (file.getHash() && *file.getHash() != section.hash)
      return emitError(op.getLoc())
             << "expected the weights in '" << section.path
             << "' as they were when the model was read, found other bytes";
    fromFiles.push_back(std::move(section));
  }
  const rt::FileSection &section = fromFiles[known->second];
  first.section = section.name;
  first.hash = section.hash;
  return success();
}

LogicalResult Emitter::addFirstValue(nn::StateOp op, rt::FirstValue &first) {
  Type element = op.getLogicalType().getElementType();
  if (auto file = dyn_cast<nn::RangeAttr>(op.getInit()))
    return addWeights(op, file, first);
  auto dense = dyn_cast<DenseElementsAttr>(op.getInit());
  if (dense && dense.isSplat()) {
    // Moments and accumulators start as zeros: no file need hold them.
    FailureOr<std::string> bytes = getBytes(
        op.getLoc(), dense.resizeSplat(RankedTensorType::get({1}, element)));
    if (failed(bytes))
      return failure();
    for (char byte : *bytes)
      first.fill.push_back(static_cast<unsigned char>(byte));
    return success();
  }
  FailureOr<std::string> bytes = getBytes(op.getLoc(), op.getInit());
  FailureOr<rt::DType> dtype = convertType(op.getLoc(), element);
  if (failed(bytes) || failed(dtype))
    return failure();
  first.section = "state:" + op.getSymName().str();
  first.bytes = bytes->size();
  first.hash = rt::hashBytes(bytes->data(), bytes->size());
  addSection(first.section, std::move(*bytes), *dtype,
             op.getLogicalType().getShape().vec());
  return success();
}

LogicalResult Emitter::addBuffer(plan::BufferOp op, rt::Program &program,
                                 SymbolTableCollection &symbols) {
  rt::BufferPlan buffer;
  buffer.name = op.getSymName().str();
  buffer.role = plan::stringifyRole(op.getRole()).str();
  buffer.space = plan::stringifySpace(op.getSpace()).str();
  buffer.offset = static_cast<int64_t>(op.getOffset());
  buffer.bytes = op.getBytes();
  buffer.slots = op.getSlots();
  buffer.slotStride = op.getSlotStride();
  if (buffer.offset < 0)
    return op.emitOpError() << "expected a buffer with an offset, found one "
                               "that was not allocated";
  if (op.getSource())
    buffer.source = op.getSource()->str();
  // The buffer whose bytes they are in the end.
  for (plan::BufferOp root = op; root && root.getAliasOf();) {
    buffer.aliasOf = root.getAliasOf()->str();
    root = symbols.lookupNearestSymbolFrom<plan::BufferOp>(
        root, root.getAliasOfAttr());
  }
  if (auto value = op.getValue()) {
    FailureOr<rt::DType> dtype =
        convertType(op.getLoc(), value->getElementType());
    FailureOr<std::string> bytes = getBytes(op.getLoc(), *value);
    if (failed(dtype) || failed(bytes))
      return failure();
    buffer.section = "constant:" + program.name + ":" + buffer.name;
    addSection(buffer.section, std::move(*bytes), *dtype,
               value->getShapedType().getShape().vec());
  }
  program.buffers.push_back(std::move(buffer));
  return success();
}

/// Says of the states that a command reads how ranks share them.
LogicalResult Emitter::share(Operation *op, const rt::ReadCommand &read) {
  for (rt::StatePlan &state : executable.states) {
    if (state.keptAs() != read.name)
      continue;
    state.axes = read.part.axes;
    state.interleaved = read.part.interleaved;
    if (!state.inStack)
      continue;
    if (state.interleaved && state.interleaved->dim-- == 0)
      return op->emitOpError() << "expected members of @" << read.name
                               << " in their own order, found parts of them";
    state.inStack->axes = state.axes.front();
    state.axes.erase(state.axes.begin());
  }
  return success();
}

LogicalResult Emitter::addTransfer(Operation *op, const rt::Command &command) {
  std::vector<rt::TensorPlan> *tensors = nullptr;
  rt::TensorPlan tensor;
  if (auto *read = std::get_if<rt::ReadCommand>(&command.what)) {
    if (read->source == "state")
      return share(op, *read);
    tensors = &executable.inputs;
    tensor = {read->name, read->target.dtype, read->part.shape};
    if (!tensor.shape.empty())
      tensor.batchDim = 0;
    auto dims = module->getAttrOfType<DictionaryAttr>(kBatchDimsAttr);
    if (auto dim = dims ? dims.getAs<IntegerAttr>(read->name) : nullptr)
      tensor.batchDim =
          dim.getInt() < 0 ? std::nullopt : std::optional(dim.getInt());
  } else if (auto *write = std::get_if<rt::WriteCommand>(&command.what)) {
    tensors = &executable.outputs;
    tensor = {write->name, write->view.dtype, write->part.shape};
  } else {
    return success();
  }
  for (const rt::TensorPlan &known : *tensors)
    if (known.name == tensor.name)
      return known.dtype == tensor.dtype && known.shape == tensor.shape
                 ? success()
                 : op->emitOpError() << "expected one shape and element type "
                                        "of '"
                                     << tensor.name << "', found two";
  tensors->push_back(std::move(tensor));
  return success();
}

LogicalResult Emitter::addProgram(plan::ProgramOp op) {
  rt::Program &program = executable.programs.emplace_back();
  program.name = op.getSymName().str();
  program.stage = op.getStage();
  if (static_cast<int64_t>(op.getRanks()) != executable.numRanks())
    return op.emitOpError()
           << "expected as many ranks as the mesh has ("
           << executable.numRanks() << "), found " << op.getRanks();
  ProgramNames names;
  for (auto arena : op.getOps<plan::ArenaOp>()) {
    program.arenas.push_back({plan::stringifySpace(arena.getSpace()).str(),
                              static_cast<int64_t>(arena.getBytes()),
                              static_cast<int64_t>(arena.getAlignment()),
                              static_cast<int64_t>(arena.getReserve())});
    if (arena.getSpace() != plan::Space::nvme)
      continue;
    FailureOr<plan::Storage> storage = plan::Storage::read(arena);
    if (failed(storage))
      return failure();
    program.arenas.back().storage = rt::StoragePlan{
        storage->path.str(), storage->blockSize, storage->queueDepth};
  }
  for (auto buffer : op.getOps<plan::BufferOp>()) {
    names.buffers[FlatSymbolRefAttr::get(buffer.getSymNameAttr())] =
        static_cast<int64_t>(program.buffers.size());
    if (failed(addBuffer(buffer, program, names.symbols)))
      return failure();
  }
  op.walk([&](plan::ReadOp read) {
    if (read.getSource() == plan::Source::input)
      names.inputs[names.buffers.lookup(read.getTarget().getBuffer())] =
          read.getName().str();
  });
  // Where a target has files read elsewhere, what is copied from there.
  op.walk([&](plan::CopyOp copy) {
    auto input =
        names.inputs.find(names.buffers.lookup(copy.getSource().getBuffer()));
    int64_t target = names.buffers.lookup(copy.getTarget().getBuffer());
    if (input != names.inputs.end() && program.buffers[target].role == "input")
      names.inputs.insert({target, std::string(input->second)});
  });
  // A body may wait for one that stands behind it.
  for (auto bodyOp : op.getOps<plan::BodyOp>())
    names.bodies.try_emplace(bodyOp.getSymNameAttr(), names.bodies.size());
  for (auto bodyOp : op.getOps<plan::BodyOp>()) {
    const Compiled *own = llvm::find_if(engines, [&](const Compiled &each) {
      return each.target->getEngine() == bodyOp.getEngine();
    });
    if (own == engines.end())
      return bodyOp.emitOpError()
             << "expected an engine that code was made for, found '"
             << plan::stringifyEngine(bodyOp.getEngine()) << "'";
    names.target = own->target;
    rt::Body &body = program.bodies.emplace_back();
    body.name = bodyOp.getSymName().str();
    body.engine = plan::stringifyEngine(bodyOp.getEngine()).str();
    for (Operation &inner : bodyOp.getBody().front()) {
      FailureOr<rt::Command> command = convertCommand(&inner, names);
      if (failed(command) || failed(addTransfer(&inner, *command)))
        return failure();
      body.commands.push_back(std::move(*command));
    }
  }
  for (auto entryOp : op.getOps<plan::EntryOp>()) {
    rt::Entry &entry = program.entries.emplace_back();
    entry.name = entryOp.getKind().str();
    auto addSegment = [&](plan::SegmentOp segmentOp) {
      rt::Segment &segment = entry.loops.back().segments.emplace_back();
      segment.engine = plan::stringifyEngine(segmentOp.getEngine()).str();
      segment.capturable = segmentOp.getCapturable();
      for (auto run : segmentOp.getOps<plan::RunOp>())
        segment.runs.push_back(
            {names.bodies.lookup(run.getTaskAttr().getAttr()),
             static_cast<int64_t>(run.getOffset())});
    };
    for (Operation &part : entryOp.getBody().front()) {
      auto loop = dyn_cast<plan::LoopOp>(part);
      // What stands between loops runs once.
      if (loop || entry.loops.empty() || entry.loops.back().trips > 1)
        entry.loops.push_back({loop ? int64_t(loop.getTrips()) : 1, {}});
      if (auto segment = dyn_cast<plan::SegmentOp>(part))
        addSegment(segment);
      else
        llvm::for_each(loop.getOps<plan::SegmentOp>(), addSegment);
    }
  }
  return success();
}

LogicalResult
emit::writeExecutable(ModuleOp plan, ArrayRef<Compiled> engines,
                      ArrayRef<std::pair<std::string, std::string>> phaseTexts,
                      StringRef outputPath, bool embedWeights) {
  return Emitter(plan, engines, outputPath, embedWeights).run(phaseTexts);
}
