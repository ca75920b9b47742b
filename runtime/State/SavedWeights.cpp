// Laying the file out, and filling it from ranks and files.

#include "State/SavedWeights.h"

#include "Base/SystemError.h"
#include "Data/ConvertElements.h"
#include "Data/Safetensors.h"
#include "Execute/Executor.h"
#include "Format/Runs.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>

namespace accel::rt {
namespace {

/// What the average of a parameter is called, before its name.
const std::string kAverage = "ema/";

/// What stands in the user's program: neither moments nor counters do.
bool isSaved(const StatePlan &state) {
  return state.role == "parameter" || state.role == "buffer";
}

/// A row-major view of a whole tensor.
View wholeView(DType dtype, const std::vector<int64_t> &shape) {
  View view;
  view.dtype = dtype;
  view.shape = shape;
  view.strides = rowMajorStrides(shape);
  return view;
}

/// Copies a whole tensor from one file to another; `digest` gets what was read.
Status copyTensor(const TensorRange &from, const TensorRange &to,
                  RangeDigest &digest) {
  View view = wholeView(from.dtype, to.shape);
  Part part{to.shape, {}};
  part.axes.resize(to.shape.size());
  std::vector<char> bytes(static_cast<size_t>(numElements(to.shape)) *
                          static_cast<size_t>(dtypeBytes(from.dtype)));
  ACCEL_RT_RETURN_IF_ERROR(
      PieceMover(from, part, view, {}).read(bytes.data(), 0, nullptr, &digest));
  return PieceMover(to, part, view, {}).write(bytes.data(), 0);
}

} // namespace

Status readSaveType(const std::string &text, std::optional<DType> &type) {
  std::pair<const char *, DType> rows[] = {
      {"bf16", DType::BF16}, {"fp16", DType::F16}, {"fp32", DType::F32}};
  type = std::nullopt;
  for (auto [name, each] : rows)
    if (text == name)
      type = each;
  if (!text.empty() && !type)
    return Status::error("expected bf16, fp16 or fp32 as --save-dtype, found " +
                         inQuotes(text));
  return Status();
}

HeldStates findHeld(const Program &program) {
  HeldStates held;
  for (const Entry &entry : program.entries) {
    if (entry.name != "load")
      continue;
    format::forEachRun(entry, [&](const Run &run, const Loop &) {
      for (const Command &command : program.bodies[run.body].commands) {
        auto *read = std::get_if<ReadCommand>(&command.what);
        if (read && read->source == "state" &&
            program.buffers[read->target.buffer].source == read->name)
          held.emplace(read->name, read);
      }
    });
  }
  return held;
}

Status
SavedWeights::create(const ExecutableFile &executable, const Weights &weights,
                     const std::string &path, const std::string &original,
                     bool averages, std::optional<DType> type,
                     const std::function<void(const std::string &)> &warn,
                     const SharedName &shared) {
  const Executable &plan = executable.plan();
  std::vector<SafetensorsEntry> entries;
  auto typeOf = [&](DType own) {
    return type && isFloatingPoint(own) ? *type : own;
  };
  std::map<std::string, Tensor> named;
  HeldStates held;
  for (const Program &program : plan.programs)
    held.merge(findHeld(program));
  std::unordered_map<std::string, const StatePlan *> averaged;
  for (const StatePlan &state : plan.states)
    if (state.role == "moment" &&
        state.name.compare(0, kAverage.size(), kAverage) == 0)
      averaged.emplace(state.name.substr(kAverage.size()), &state);
  if (averages && averaged.empty())
    return Status::error("option '--averages' writes averages of parameters, "
                         "and the program keeps none: compile it with --set "
                         "ema.decay=D");
  if (!averages && !averaged.empty()) {
    if (warn)
      warn("the program keeps averages of its weights; what is saved are the "
           "weights that the next step would train, unless --averages is "
           "given");
    averaged.clear();
  }
  for (const StatePlan &parameter : plan.states) {
    if (!isSaved(parameter))
      continue;
    auto average = averaged.find(parameter.name);
    const StatePlan &state =
        average == averaged.end() ? parameter : *average->second;
    if (!state.frozen && !held.count(state.keptAs()))
      return Status::error("expected a buffer that keeps state " +
                           inQuotes(state.name) +
                           ", found none: its value cannot be saved");
    std::vector<std::string> names = parameter.aliases;
    names.push_back(parameter.name);
    for (const std::string &name : names) {
      entries.push_back({name, typeOf(state.dtype), state.valueShape()});
      named[name].state = &state;
    }
  }
  if (!original.empty()) {
    originalFile =
        FileHandle(::open(original.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    if (!originalFile)
      return Status::error("cannot open " + inQuotes(original) + ": " +
                           systemError(errno));
    std::vector<SafetensorsEntry> found;
    uint64_t start = 0;
    ACCEL_RT_RETURN_IF_ERROR(
        readSafetensors(originalFile.get(), original, found, start));
    std::unordered_map<std::string_view, const SafetensorsEntry *> originals;
    for (const SafetensorsEntry &entry : found)
      originals.emplace(entry.name, &entry);
    for (const FoldedParameter &folded : plan.folded) {
      auto at = originals.find(folded.name);
      const SafetensorsEntry *entry =
          at == originals.end() ? nullptr : at->second;
      if (!entry)
        return Status::error("expected parameter " + inQuotes(folded.name) +
                             ", which the exporter folded away, in " +
                             inQuotes(original) + ", found none");
      if (folded.shape && *folded.shape != entry->shape)
        return Status::error("expected shape " + shapeText(*folded.shape) +
                             " of parameter " + inQuotes(folded.name) + " in " +
                             inQuotes(original) + ", found " +
                             shapeText(entry->shape));
      // The file may be anybody's; what is moved has no more dimensions.
      if (entry->shape.size() > kMaxRank)
        return Status::error(
            "expected at most " + std::to_string(kMaxRank) +
            " dimensions of parameter " + inQuotes(folded.name) + " in " +
            inQuotes(original) + ", found shape " + shapeText(entry->shape));
      entries.push_back({folded.name, typeOf(entry->dtype), entry->shape});
      named[folded.name].original = {
          originalFile.get(), original,     start + entry->begin,
          entry->dtype,       entry->shape, rowMajorStrides(entry->shape)};
    }
  } else if (warn) {
    for (const FoldedParameter &folded : plan.folded)
      warn("parameter " + inQuotes(folded.name) + " is not in " +
           inQuotes(path) +
           ": the exporter folded it away; export with torch.onnx.export(…, "
           "dynamo=True, "
           "optimize=False) to train it, or give its first value with "
           "--original-weights");
  }
  std::string header = safetensorsHeader(entries);
  uint64_t bytes = header.size();
  for (const SafetensorsEntry &entry : entries)
    bytes += entry.bytes;
  ACCEL_RT_RETURN_IF_ERROR(file.create(path, bytes, shared));
  if (!shared.isOthers)
    ACCEL_RT_RETURN_IF_ERROR(
        writeRange(file.descriptor(), path, 0, header.data(), header.size()));
  for (const SafetensorsEntry &entry : entries) {
    Tensor &tensor = named[entry.name];
    tensor.target = {
        file.descriptor(), path,        header.size() + entry.begin,
        entry.dtype,       entry.shape, rowMajorStrides(entry.shape)};
    tensors.push_back(std::move(tensor));
  }
  return shared.isOthers ? Status() : copyUnchanged(plan, weights);
}

Status SavedWeights::copyUnchanged(const Executable &plan,
                                   const Weights &weights) const {
  RangeBlocks whole;
  for (const Tensor &tensor : tensors) {
    RangeDigest digest(whole);
    if (!tensor.state) {
      ACCEL_RT_RETURN_IF_ERROR(
          copyTensor(tensor.original, tensor.target, digest));
      continue;
    }
    if (!tensor.state->frozen)
      continue;
    size_t number = static_cast<size_t>(tensor.state - plan.states.data());
    const OpenTensor &value = weights.values()[number];
    ACCEL_RT_RETURN_IF_ERROR(copyTensor(value.range, tensor.target, digest));
    const Weights::Check &check = weights.checkOf(number);
    if (check.hash && digest.value() != *check.hash)
      return check.changed(value);
  }
  return Status();
}

Status SavedWeights::writePieces(const Program &program,
                                 const Coordinates &coordinates,
                                 const Executor &executor,
                                 std::atomic<uint64_t> &progress) const {
  HeldStates held = findHeld(program);
  for (const Tensor &tensor : tensors) {
    if (!tensor.state || tensor.state->frozen)
      continue;
    auto found = held.find(tensor.state->keptAs());
    if (found == held.end() || !isWriter(found->second->part, coordinates))
      continue;
    const ReadCommand &read = *found->second;
    std::optional<KeptPiece> kept =
        findKept(*tensor.state, read.part, read.target, coordinates);
    if (!kept)
      continue;
    Address at = executor.address(kept->view);
    PieceMover mover(tensor.target, kept->part, kept->view, coordinates,
                     executor.memory().ifRemote(at));
    ACCEL_RT_RETURN_IF_ERROR(mover.write(at, 0));
    progress.fetch_add(1);
  }
  return Status();
}

Status SavedWeights::finish() {
  Status status = file.complete();
  if (status.ok())
    status = file.publish();
  if (status.ok())
    return status;
  std::string kept = file.rescue();
  return Status::error(status.message() +
                       (kept.empty()
                            ? "; the weights could be kept nowhere else"
                            : "; the weights are in " + inQuotes(kept)));
}

} // namespace accel::rt
