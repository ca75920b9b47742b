// Opens the files of inputs and states, and makes the tasks that move pieces of
// them.

#include "Feed/InputOutput.h"

#include "Base/StagingBytes.h"
#include "Base/SystemError.h"
#include "Data/OpenTensor.h"
#include "Feed/DataFeed.h"

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <map>
#include <sys/stat.h>

namespace accel::rt {
namespace {

const TensorRange *findTensor(const std::vector<OpenTensor> &tensors,
                              const std::string &name) {
  for (const OpenTensor &tensor : tensors)
    if (tensor.name == name)
      return &tensor.range;
  return nullptr;
}

/// The files input_K.pb of a folder, by their numbers.
Status findNumberedFiles(const std::string &folder,
                         std::map<size_t, std::string> &files) {
  std::error_code error;
  std::filesystem::directory_iterator next(folder, error), end;
  for (; !error && next != end; next.increment(error)) {
    std::string name = next->path().filename();
    size_t number = 0;
    if (std::sscanf(name.c_str(), "input_%zu.pb", &number) == 1 &&
        name == "input_" + std::to_string(number) + ".pb")
      files.emplace(number, next->path());
  }
  return error ? Status::error("cannot read the folder of inputs " +
                               inQuotes(folder) + ": " +
                               systemError(error.value()))
               : Status();
}

/// A mask of rows all of which count.
TensorRange everyRow(const TensorPlan &mask) {
  TensorRange range;
  range.dtype = mask.dtype;
  range.shape = mask.shape;
  range.strides = rowMajorStrides(mask.shape);
  range.fill = {1};
  return range;
}

} // namespace

std::string fileNameOf(const std::string &name) {
  std::string result;
  for (char c : name)
    result += c == '/' ? std::string("%2F") : std::string(1, c);
  return result;
}

//===----------------------------------------------------------------------===//
// Inputs
//===----------------------------------------------------------------------===//

Status Inputs::open(const Executable &executable,
                    const std::vector<TensorPlan> &wanted,
                    const std::string &folder, const DataFeed *data) {
  const std::vector<TensorPlan> &all = executable.inputs;
  struct stat info;
  if (!wanted.empty() && !folder.empty()) {
    int error = stat(folder.c_str(), &info) != 0 ? errno : 0;
    if (error == ENOENT || error == ENOTDIR ||
        (!error && !S_ISDIR(info.st_mode)))
      return Status::error("expected a folder of inputs, found none at " +
                           inQuotes(folder));
    if (error)
      return Status::error("cannot open the folder of inputs " +
                           inQuotes(folder) + ": " + systemError(error));
  }
  // Test sets number their files by the model's inputs, of which some may be
  // bound or read by nothing: a file that names its tensor says it better, and
  // the number is for names that nothing has.
  std::vector<OpenTensor> numbered;
  std::unordered_map<std::string_view, size_t> numbers;
  for (size_t i = 0; i < all.size(); ++i)
    numbers.emplace(all[i].name, i);
  std::map<size_t, std::string> numberedFiles;
  if (!wanted.empty() && !folder.empty())
    ACCEL_RT_RETURN_IF_ERROR(findNumberedFiles(folder, numberedFiles));
  for (auto &[number, path] : numberedFiles) {
    FileHandle file = openForReading(path), memory;
    if (!file)
      return Status::error("cannot open " + inQuotes(path) + ": " +
                           systemError(errno));
    OpenTensor tensor;
    ACCEL_RT_RETURN_IF_ERROR(
        openTensorProto(file.get(), path, tensor.range, tensor.name, memory));
    bool isNamed = numbers.count(tensor.name) != 0;
    if (!isNamed && number >= all.size())
      continue;
    if (!isNamed)
      tensor.name = all[number].name;
    numbered.insert(isNamed ? numbered.begin() : numbered.end(),
                    std::move(tensor));
    files.push_back(std::move(file));
    files.push_back(std::move(memory));
  }
  std::vector<std::string> twice; // given by a file, and by the data
  std::unordered_map<std::string, std::string> readers; // of a file
  for (const TensorPlan &input : wanted) {
    std::string path = folder + "/" + fileNameOf(input.name) + ".npy";
    OpenTensor tensor;
    tensor.name = input.name;
    FileHandle file = folder.empty() ? FileHandle() : openForReading(path);
    if (file) {
      auto [reader, isFirst] = readers.emplace(path, input.name);
      if (!isFirst) // 'a/b' and 'a%2Fb'
        return Status::error("expected a file of its own for each input, found "
                             "that " +
                             inQuotes(reader->second) + " and " +
                             inQuotes(input.name) + " both read " +
                             inQuotes(path) + ": give them as input_K.pb");
      ACCEL_RT_RETURN_IF_ERROR(openNpy(file.get(), path, tensor.range));
      files.push_back(std::move(file));
    } else if (!folder.empty() && errno != ENOENT && errno != ENAMETOOLONG) {
      return Status::error("cannot open " + inQuotes(path) + ": " +
                           systemError(errno));
    } else if (const TensorRange *found = findTensor(numbered, input.name)) {
      tensor.range = *found;
    } else if (data && data->feeds(input.name)) {
      continue;
    } else if (executable.rowMask && input.name == executable.rowMask->input) {
      tensor.range = everyRow(input);
    } else if (data) {
      return Status::error("expected input " + inQuotes(input.name) + " (" +
                           typeText(input.dtype, input.shape) + ") as " +
                           inQuotes(fileNameOf(input.name) + ".npy") +
                           " in a folder --inputs, because " +
                           data->whyNot(input.name));
    } else {
      return Status::error(
          "expected input " + inQuotes(input.name) + " (" +
          typeText(input.dtype, input.shape) + ") as " +
          inQuotes(fileNameOf(input.name) + ".npy") + " or " +
          inQuotes("input_" + std::to_string(numbers.at(input.name)) + ".pb") +
          " in " + inQuotes(folder) + ", found neither");
    }
    if (data && data->feeds(input.name)) {
      twice.push_back(input.name);
      continue;
    }
    if (tensor.range.dtype != input.dtype || tensor.range.shape != input.shape)
      return Status::error("expected " + typeText(input.dtype, input.shape) +
                           " for input " + inQuotes(input.name) + ", found " +
                           typeText(tensor.range.dtype, tensor.range.shape) +
                           " in " + inQuotes(tensor.range.path));
    tensors.push_back(std::move(tensor));
  }
  return twice.empty() ? Status() : data->refuseFiles(twice, folder);
}

Status Inputs::hash(uint64_t &hash) const {
  hash = 0;
  std::vector<char> buffer(kStagingBytes);
  for (const OpenTensor &tensor : tensors) {
    const TensorRange &range = tensor.range;
    if (!range.fill.empty())
      continue;
    uint64_t bytes = static_cast<uint64_t>(numElements(range.shape)) *
                     static_cast<uint64_t>(dtypeBytes(range.dtype));
    for (uint64_t done = 0; done < bytes;) {
      uint64_t count = std::min<uint64_t>(buffer.size(), bytes - done);
      ACCEL_RT_RETURN_IF_ERROR(readRange(
          range.fd, range.path, range.offset + done, buffer.data(), count));
      hash = hash * 31 + hashBytes(buffer.data(), count);
      done += count;
    }
  }
  return Status();
}

const TensorRange *Inputs::find(const std::string &name) const {
  return findTensor(tensors, name);
}

//===----------------------------------------------------------------------===//
// Tasks
//===----------------------------------------------------------------------===//

namespace {

class ReadTask : public HostTask {
public:
  explicit ReadTask(PieceMover mover) : mover(std::move(mover)) {}
  Status run(const Address *views, int64_t microBatch) override {
    return mover.read(views[0], microBatch);
  }

private:
  PieceMover mover;
};

/// Reads a rank's piece of a state's value, and holds the very bytes that it
/// has read against their hash: what was checked before may have changed since.
class LoadTask : public HostTask {
public:
  LoadTask(PieceMover mover, const OpenTensor &tensor, RangeBlocks blocks,
           const Weights::Check &check, const uint64_t *pieceHash,
           std::atomic<uint64_t> &counter)
      : mover(std::move(mover)), tensor(tensor), blocks(std::move(blocks)),
        check(check), pieceHash(pieceHash), counter(counter) {}
  Status run(const Address *views, int64_t microBatch) override {
    RangeDigest digest(blocks);
    ACCEL_RT_RETURN_IF_ERROR(
        mover.read(views[0], microBatch, &counter, &digest));
    if (check.hash &&
        digest.value() != (blocks.isSplit() ? *pieceHash : *check.hash))
      return check.changed(tensor);
    return Status();
  }

private:
  PieceMover mover;
  const OpenTensor &tensor;
  RangeBlocks blocks;
  const Weights::Check &check;
  const uint64_t *pieceHash;
  std::atomic<uint64_t> &counter;
};

/// Loads the rows of a stack, one after another; what is padding is zeros.
class LoadRowsTask : public HostTask {
public:
  void add(std::unique_ptr<HostTask> row, int64_t bytes) {
    rows.push_back({std::move(row), bytes});
  }
  Status run(const Address *views, int64_t microBatch) override {
    for (const auto &[row, bytes] : rows) {
      Address own = views[0] + bytes;
      ACCEL_RT_RETURN_IF_ERROR(row->run(&own, microBatch));
    }
    return Status();
  }

private:
  std::vector<std::pair<std::unique_ptr<HostTask>, int64_t>> rows;
};

/// Moves the pieces of all micro-batches, one after another.
class EachTask : public HostTask {
public:
  /// `command` is that of one micro-batch, which the task of it may look at;
  /// pieces are `bytes` apart.
  EachTask(std::unique_ptr<Command> command, std::unique_ptr<Task> each,
           int64_t count, int64_t bytes)
      : command(std::move(command)), each(std::move(each)), count(count),
        bytes(bytes) {}
  Status run(const Address *views, int64_t) override {
    for (int64_t microBatch = 0; microBatch < count; ++microBatch) {
      Address own = views[0] + microBatch * bytes;
      ACCEL_RT_RETURN_IF_ERROR(
          static_cast<HostTask &>(*each).run(&own, microBatch));
    }
    return Status();
  }

private:
  std::unique_ptr<Command> command;
  std::unique_ptr<Task> each;
  int64_t count, bytes;
};

/// Of a command that moves the pieces of all micro-batches that which moves
/// one; `bytes` are between them. Null: it moves one as it is.
std::unique_ptr<Command> ofOneMicroBatch(const Command &command,
                                         int64_t &bytes) {
  auto one = std::make_unique<Command>(command);
  auto *read = std::get_if<ReadCommand>(&one->what);
  auto *write = std::get_if<WriteCommand>(&one->what);
  bool &isOfEach = read ? read->eachMicroBatch : write->eachMicroBatch;
  if (!isOfEach)
    return nullptr;
  isOfEach = false;
  View &view = read ? read->target : write->view;
  bytes = view.strides.front() * dtypeBytes(view.dtype);
  view.shape.erase(view.shape.begin());
  view.strides.erase(view.strides.begin());
  return one;
}

/// Of a device without memory, and of what nobody wants.
class NothingTask : public HostTask {
public:
  Status run(const Address *, int64_t) override { return Status(); }
};

/// Replicated pieces are written by one rank, which says `writer`.
class WriteTask : public HostTask {
public:
  WriteTask(std::optional<PieceMover> mover, InputOutput &io)
      : mover(std::move(mover)), io(io) {}
  Status run(const Address *views, int64_t microBatch) override {
    if (!mover || !io.writing)
      return Status();
    auto begin = std::chrono::steady_clock::now();
    Status status = mover->write(views[0], microBatch);
    io.writeSeconds +=
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin)
            .count();
    return status;
  }

private:
  std::optional<PieceMover> mover;
  InputOutput &io;
};

/// Keeps a number that a training step or an evaluation reports.
class ReportTask : public HostTask {
public:
  ReportTask(Memory &memory, DType dtype, double &value)
      : memory(memory), dtype(dtype), value(value) {}
  Status run(const Address *views, int64_t) override {
    if (dtype == DType::F64)
      return memory.download(&value, views[0], {sizeof value});
    return dtype == DType::I32 ? widen<int32_t>(views[0])
                               : widen<float>(views[0]);
  }

private:
  template <class T> Status widen(Address from) {
    T narrow = 0;
    ACCEL_RT_RETURN_IF_ERROR(memory.download(&narrow, from, {sizeof narrow}));
    value = static_cast<double>(narrow);
    return Status();
  }

  Memory &memory;
  DType dtype;
  double &value;
};

/// Keeps the numbers by which a step measures a tensor.
class MetricTask : public HostTask {
public:
  MetricTask(Memory &memory, float *values) : memory(memory), values(values) {}
  Status run(const Address *views, int64_t) override {
    return memory.download(values, views[0], {kMetricSize * sizeof *values});
  }

private:
  Memory &memory;
  float *values;
};

} // namespace

bool isMetric(const std::string &output) {
  return output.rfind(kMetricPrefix, 0) == 0;
}

bool isReport(const Executable &executable, const std::string &output) {
  if (isMetric(output))
    return true;
  if (executable.separateRows)
    for (const LossTerm &term : executable.separateRows->terms)
      if (output == term.numerator || output == term.denominator)
        return true;
  return executable.placeOfReport(output) < executable.reports.size();
}

Status InputOutput::prepareLoad(const ReadCommand &read,
                                const Coordinates &coordinates,
                                RankControl &control, Memory *remote,
                                std::unique_ptr<Task> &task) {
  if (!weights || weights->find(read.name).empty())
    return Status::error("found no value for " + inQuotes(read.name));
  if (staging.empty())
    staging.resize(kStagingBytes);
  auto load = [&](size_t state, const KeptPiece &kept) {
    const OpenTensor &tensor = weights->values()[state];
    return std::make_unique<LoadTask>(
        PieceMover(tensor.range, kept.part, kept.view, coordinates, remote,
                   &staging),
        tensor, RangeBlocks(tensor.range, kept.part, coordinates),
        weights->checkOf(state), pieceHashes + state, control.weightBytesRead);
  };
  const std::vector<size_t> &states = weights->find(read.name);
  if (!executable.states[states.front()].inStack) {
    task = load(states.front(), {read.part, read.target});
    return Status();
  }
  auto rows = std::make_unique<LoadRowsTask>();
  for (size_t state : states)
    if (auto kept = findKept(executable.states[state], read.part, read.target,
                             coordinates))
      rows->add(load(state, *kept), kept->bytes);
  // Validated: rows are there from the first on.
  for (int64_t row = static_cast<int64_t>(states.size());
       row < read.part.shape.front(); ++row)
    if (auto kept = findRow(row, read.part, read.target, coordinates)) {
      TensorRange zeros;
      zeros.dtype = kept->view.dtype;
      zeros.shape = kept->part.shape;
      zeros.strides = rowMajorStrides(zeros.shape);
      zeros.fill.resize(static_cast<size_t>(dtypeBytes(zeros.dtype)));
      rows->add(std::make_unique<ReadTask>(PieceMover(
                    zeros, kept->part, kept->view, coordinates, remote)),
                kept->bytes);
    }
  task = std::move(rows);
  return Status();
}

Status InputOutput::prepare(const Command &command,
                            const Coordinates &coordinates,
                            RankControl &control, Work &work) {
  std::unique_ptr<Task> &task = work.task;
  work.kind = Work::Kind::Host;
  work.isCapturable = false; // a file is another one in every call
  if (!moves) {
    task = std::make_unique<NothingTask>();
    return Status();
  }
  int64_t bytes = 0;
  if (auto one = ofOneMicroBatch(command, bytes)) {
    Work each;
    each.places = work.places;
    ACCEL_RT_RETURN_IF_ERROR(prepare(*one, coordinates, control, each));
    task = std::make_unique<EachTask>(std::move(one), std::move(each.task),
                                      executable.microBatches, bytes);
    return Status();
  }
  Address at = work.places.front().base;
  Memory *remote = memory->ifRemote(at);
  if (auto *read = std::get_if<ReadCommand>(&command.what)) {
    if (read->source == "state")
      return prepareLoad(*read, coordinates, control, remote, task);
    const TensorRange *range = inputs ? inputs->find(read->name) : nullptr;
    if (!range && data && data->feeds(read->name)) {
      task = data->prepare(*read, coordinates, *memory, at, finishedSteps);
      return Status();
    }
    if (!range)
      return Status::error("found no value for " + inQuotes(read->name));
    task = std::make_unique<ReadTask>(
        PieceMover(*range, read->part, read->target, coordinates, remote));
    return Status();
  }
  auto &write = std::get<WriteCommand>(command.what);
  if (write.target != "output")
    return Status::error("expected a write of an output, found one of a " +
                         write.target);
  if (isMetric(write.name)) {
    if (!metrics || !metrics->isOpen())
      task = std::make_unique<NothingTask>();
    else
      task = std::make_unique<MetricTask>(*memory, metrics->add(write.name));
    return Status();
  }
  if (isReport(executable, write.name)) {
    double *value = losses.find(write.name);
    if (!value)
      value = &record.values[executable.placeOfReport(write.name)];
    task = std::make_unique<ReportTask>(*memory, write.view.dtype, *value);
    return Status();
  }
  std::optional<PieceMover> mover;
  if (outputs && isWriter(write.part, coordinates))
    if (const TensorRange *range = outputs->find(write.name))
      mover.emplace(*range, write.part, write.view, coordinates, remote);
  task = std::make_unique<WriteTask>(std::move(mover), *this);
  return Status();
}

} // namespace accel::rt
