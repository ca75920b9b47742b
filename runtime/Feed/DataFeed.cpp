// Which inputs get what, and what is said of the data.

#include "Feed/DataFeed.h"

#include "Data/Safetensors.h"
#include "Feed/FeedArray.h"
#include "Feed/FeedMask.h"
#include "Feed/InputOutput.h"

#include <algorithm>
#include <chrono>

namespace accel::rt {
namespace {

bool isIndex(DType dtype) { return dtype == DType::I32 || dtype == DType::I64; }

bool contains(const std::string &name,
              std::initializer_list<const char *> parts) {
  std::string lower = name;
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return std::tolower(c); });
  return std::any_of(parts.begin(), parts.end(), [&](const char *part) {
    return lower.find(part) != std::string::npos;
  });
}

/// The tensors of a safetensors file that inputs are called as; none: `path`
/// names no such file. Errors: it has none for any input.
Status tensorsOf(const std::string &path, const std::vector<TensorPlan> &inputs,
                 std::vector<InputFile> &files) {
  std::string name, tensor;
  if (!isSafetensors(path, name, tensor) || !tensor.empty())
    return Status();
  DataFile file;
  ACCEL_RT_RETURN_IF_ERROR(file.open(path));
  std::vector<SafetensorsEntry> entries;
  uint64_t start;
  ACCEL_RT_RETURN_IF_ERROR(
      readSafetensors(file.descriptor(), path, entries, start));
  std::string found;
  for (const SafetensorsEntry &entry : entries) {
    found += (found.empty() ? "" : ", ") + inQuotes(entry.name);
    for (const TensorPlan &input : inputs)
      if (input.name == entry.name)
        files.push_back({input.name, path});
  }
  if (!files.empty())
    return Status();
  std::string names;
  for (const TensorPlan &input : inputs)
    names += (names.empty() ? "" : ", ") + inQuotes(input.name);
  return Status::error(
      "expected tensors in " + inQuotes(path) +
      " that inputs of the program (" + names + ") are called as, found " +
      (found.empty() ? "none" : found) + ": say INPUT=" + path + ":TENSOR");
}

} // namespace

Status DataFeed::open(const std::vector<TensorPlan> &wanted,
                      const DataSource &source) {
  path = source.text;
  std::vector<InputFile> files;
  ACCEL_RT_RETURN_IF_ERROR(filesOf(path, wanted, files));
  if (files.empty())
    ACCEL_RT_RETURN_IF_ERROR(tensorsOf(path, wanted, files));
  hasTokens = files.empty();
  ACCEL_RT_RETURN_IF_ERROR(hasTokens ? openTokens(wanted, source)
                                     : openArrays(wanted, files));
  order.kind = source.order;
  order.seed = source.seed;
  order.firstStep = static_cast<uint64_t>(source.firstStep);
  order.last = source.last;
  for (Input &input : inputs)
    input.isIgnored =
        source.last == SampleOrder::Keep && input.name == source.ignoredIn;
  if (source.last == SampleOrder::Keep && feeds(source.rowMask))
    return Status::error("cannot use --last-batch=keep with data for input " +
                         inQuotes(source.rowMask) +
                         ", which says which rows of the last batch count: "
                         "leave it out of the data");
  for (const TensorPlan &input : wanted)
    if (input.name == source.rowMask && !feeds(input.name)) {
      Input &mask = inputs.emplace_back();
      mask.name = input.name;
      mask.isRowMask = true;
    }
  if (source.split && !hasTokens)
    return Status::error("option '--data-split' parts Megatron-LM datasets, "
                         "and " +
                         inQuotes(path) + " is none");
  return checkEpochs();
}

Status DataFeed::checkEpochs() const {
  if (isBlend() && order.kind == SampleOrder::Once)
    return Status::error("expected one file of tokens to evaluate on, found "
                         "the blend " +
                         inQuotes(path) +
                         ", of which there is no last sample: evaluate on its "
                         "files one by one");
  if (isBlend() && order.last != SampleOrder::Next)
    return Status::error(
        "cannot use option '--last-batch' with the blend " + inQuotes(path) +
        ", whose files end at different steps and begin again: it has no last "
        "batch");
  if (order.last == SampleOrder::Drop && numBatches() < 1)
    return Status::error(
        "expected at least one whole batch of " + std::to_string(batchSize()) +
        " samples for --last-batch=drop, found " +
        std::to_string(numSamples()) + " samples in " + inQuotes(path));
  return Status();
}

Status DataFeed::openArrays(const std::vector<TensorPlan> &wanted,
                            const std::vector<InputFile> &files) {
  const InputFile *first = nullptr;
  for (const InputFile &file : files) {
    auto input =
        std::find_if(wanted.begin(), wanted.end(), [&](const TensorPlan &each) {
          return each.name == file.input;
        });
    Input &fed = inputs.emplace_back();
    fed.name = file.input;
    ACCEL_RT_RETURN_IF_ERROR(fed.array.emplace().open(file.path, *input));
    fed.dim = static_cast<size_t>(*input->batchDim);
    auto samples = static_cast<uint64_t>(fed.array->numSamples()),
         batch = static_cast<uint64_t>(input->shape[fed.dim]);
    if (!first) {
      first = &file;
      order.samples = samples;
      order.batch = batch;
    }
    auto differ = [&](const char *of, uint64_t expected, uint64_t found) {
      return Status::error(
          "expected as many " + std::string(of) + " input " +
          inQuotes(file.input) + " as of " + inQuotes(first->input) + " (" +
          std::to_string(expected) + "), found " + std::to_string(found));
    };
    if (batch != order.batch)
      return differ("rows in a batch of", order.batch, batch);
    if (samples != order.samples)
      return differ(("samples in " + inQuotes(file.path) + " of").c_str(),
                    order.samples, samples);
  }
  return order.batch ? Status()
                     : Status::error("expected at least one row in a batch of "
                                     "input " +
                                     inQuotes(first->input) + ", found none");
}

Status DataFeed::openTokens(const std::vector<TensorPlan> &wanted,
                            const DataSource &source) {
  bool next = source.labels == "next";
  if (!source.labels.empty() && !next && source.labels != "same")
    return Status::error("expected same or next as --data-labels, found " +
                         inQuotes(source.labels));
  for (const TensorPlan &input : wanted) {
    if (!isIndex(input.dtype) || input.shape.size() != 2 ||
        input.batchDim != 0 ||
        contains(input.name, {"position", "type", "segment"}))
      continue;
    bool isLabel = contains(input.name, {"label", "target"});
    TokenContent content =
        isLabel ? (next ? TokenContent::NextTokens : TokenContent::Tokens)
        : contains(input.name, {"mask"}) ? TokenContent::Ones
                                         : TokenContent::Tokens;
    if (shape.empty())
      shape = input.shape;
    if (input.shape == shape) {
      Input &fed = inputs.emplace_back();
      fed.name = input.name;
      fed.content = content;
      fed.isLabel = isLabel;
    }
  }
  if (inputs.empty())
    return Status::error("expected an input of integers [batch, length] for "
                         "the tokens of " +
                         inQuotes(path) +
                         ", found none: give inputs files of their own, as "
                         "INPUT=FILE,INPUT=FILE");
  ACCEL_RT_RETURN_IF_ERROR(
      tokens.open(path, source.type, shape[1], source.split));
  order.samples = static_cast<uint64_t>(tokens.numSamples());
  order.batch = static_cast<uint64_t>(shape[0]);
  return Status();
}

std::vector<const DataFile *> DataFeed::files() const {
  std::vector<const DataFile *> all;
  for (const TokenFile &part : tokens.files())
    part.addTo(all);
  for (const Input &input : inputs)
    if (input.array)
      all.push_back(&input.array->source());
  return all;
}

Status DataFeed::check() const {
  for (const TokenFile &part : tokens.files())
    ACCEL_RT_RETURN_IF_ERROR(part.check());
  for (const Input &input : inputs)
    if (input.array)
      ACCEL_RT_RETURN_IF_ERROR(input.array->source().check());
  return Status();
}

Status DataFeed::getCursor(bool hashed, const RunOptions &options,
                           DataCursor &cursor) const {
  cursor.samples = static_cast<int64_t>(order.samples);
  cursor.length = hasTokens ? shape[1] : 0;
  cursor.batch = static_cast<int64_t>(order.batch);
  cursor.isShuffled = order.kind == SampleOrder::Shuffled;
  cursor.seed = static_cast<int64_t>(order.seed);
  cursor.firstStep = static_cast<int64_t>(order.firstStep);
  cursor.last = order.last;
  cursor.file = path;
  if (!hashed)
    return Status();
  using Clock = std::chrono::steady_clock;
  auto last = Clock::now();
  auto tell = [&](uint64_t done, uint64_t bytes) {
    if (!options.progress || Clock::now() - last < std::chrono::seconds(2))
      return;
    last = Clock::now();
    options.progress("loading: hashed " + std::to_string(done >> 20) + " of " +
                     std::to_string(bytes >> 20) + " MiB of data");
  };
  if (hasTokens)
    return tokens.hash(tell, cursor.hash.emplace());
  uint64_t done = 0, all = 0;
  for (const Input &input : inputs)
    all += input.array ? input.array->bytes() : 0;
  std::string text;
  for (const Input &input : inputs) {
    if (!input.array)
      continue;
    uint64_t hash;
    ACCEL_RT_RETURN_IF_ERROR(input.array->hash(
        [&](uint64_t bytes) { tell(done + bytes, all); }, hash));
    done += input.array->bytes();
    text += input.name + '\0' + std::to_string(hash) + '\0';
  }
  cursor.hash = hashBytes(text.data(), text.size());
  return Status();
}

const DataFeed::Input *DataFeed::find(const std::string &name) const {
  for (const Input &input : inputs)
    if (input.name == name)
      return &input;
  return nullptr;
}

bool DataFeed::feeds(const std::string &input) const {
  return find(input) != nullptr;
}

Status DataFeed::findAny(const std::vector<int64_t> &values, bool &isFound,
                         int64_t &found) const {
  isFound = false;
  auto look = [&](int64_t value) {
    isFound = std::find(values.begin(), values.end(), value) != values.end();
    if (isFound)
      found = value;
    return isFound;
  };
  bool givesOnes =
      std::any_of(inputs.begin(), inputs.end(), [](const Input &fed) {
        return fed.content == TokenContent::Ones;
      });
  if (values.empty() || (givesOnes && look(1)))
    return Status();
  for (const Input &input : inputs)
    if (input.array)
      ACCEL_RT_RETURN_IF_ERROR(input.array->forEachNumber(look));
  if (isFound || !hasTokens)
    return Status();
  int64_t room[TokenFile::kMaxRead];
  for (const TokenFile &part : tokens.files())
    for (int64_t sample = 0; sample < part.numSamples(); ++sample)
      for (int64_t begin = 0; begin < shape[1]; begin += TokenFile::kMaxRead) {
        int64_t count = std::min(TokenFile::kMaxRead, shape[1] - begin);
        ACCEL_RT_RETURN_IF_ERROR(part.read(sample, begin, count, room));
        if (std::any_of(room, room + count, look))
          return Status();
      }
  return Status();
}

bool DataFeed::feedsLabels() const {
  return std::any_of(inputs.begin(), inputs.end(),
                     [](const Input &fed) { return fed.isLabel; });
}

bool DataFeed::feedsAll(const std::vector<TensorPlan> &wanted) const {
  return std::all_of(wanted.begin(), wanted.end(),
                     [&](const TensorPlan &each) { return feeds(each.name); });
}

Status DataFeed::refuseFiles(const std::vector<std::string> &names,
                             const std::string &folder) const {
  std::string list;
  for (size_t i = 0; i < names.size(); ++i)
    list += (i == 0                  ? ""
             : i + 1 == names.size() ? " and "
                                     : ", ") +
            inQuotes(names[i]);
  bool one = names.size() == 1;
  return Status::error(
      std::string("expected each input from one place, found ") + list +
      " in " + inQuotes(path) + " and in " + inQuotes(folder) +
      ": to use the data, " + "give a folder without " +
      (one ? "its file" : "their files") +
      ", that has the inputs which the data do not feed alone; to use the " +
      (one ? "file" : "files") + ", leave out the data");
}

std::string DataFeed::whereIs(int64_t finishedSteps, const std::string &input,
                              std::optional<int64_t> number) const {
  const Input *fed = find(input);
  if (!fed || fed->isRowMask || fed->content == TokenContent::Ones)
    return "";
  TokenCorpus::Reader reader(tokens, order);
  auto place = [](int64_t sample, const std::string &element,
                  const std::string &file) {
    return "sample " + std::to_string(sample) + ", " + element + ", of " +
           inQuotes(file);
  };
  for (int64_t g = 0; g < batchSize(); ++g) {
    if (fed->array) {
      uint64_t sample = order.sampleAt(static_cast<uint64_t>(finishedSteps),
                                       static_cast<uint64_t>(g));
      std::string element;
      if (fed->array->findInSample(sample, number, element).ok() &&
          !element.empty())
        return place(static_cast<int64_t>(sample), element, fed->array->path());
      continue;
    }
    TokenCorpus::Place at = reader.placeOf(finishedSteps, g);
    int64_t end = at.file->numFollowed(at.sample) + 1,
            room[TokenFile::kMaxRead] = {};
    for (int64_t begin = 0; number && begin < end;
         begin += TokenFile::kMaxRead) {
      int64_t count = std::min(TokenFile::kMaxRead, end - begin);
      if (!at.file->read(at.sample, begin, count, room).ok())
        return "";
      if (int64_t *found = std::find(room, room + count, *number);
          found != room + count)
        return place(at.sample,
                     "token " + std::to_string(begin + (found - room)),
                     at.file->path());
    }
  }
  return "";
}

std::string DataFeed::whatIsNotFinite(int64_t finishedSteps) const {
  for (const Input &input : inputs)
    if (std::string where = whereIs(finishedSteps, input.name, std::nullopt);
        !where.empty())
      return "; input " + inQuotes(input.name) + " has nan or inf in " + where;
  return "";
}

std::string DataFeed::whereRefused(int64_t finishedSteps,
                                   const std::string &message) const {
  // The position is one of a rank's piece; the number is wrong wherever it is.
  static const std::string found = ", found ", of = " of input '";
  size_t at = message.find(found), name = message.find(of);
  if (at == std::string::npos || name == std::string::npos ||
      message.back() != '\'')
    return "";
  int64_t number =
      std::strtoll(message.c_str() + at + found.size(), nullptr, 10);
  name += of.size();
  std::string where = whereIs(
      finishedSteps, message.substr(name, message.size() - 1 - name), number);
  return where.empty() ? "" : ", which is " + where;
}

std::string DataFeed::whyNot(const std::string &input) const {
  std::string file, tensor;
  if (!hasTokens && isSafetensors(path, file, tensor))
    return "the data " + inQuotes(path) + " have no tensor of that name";
  if (!hasTokens)
    return "the data " + inQuotes(path) + " have no file for it: add " +
           inQuotes(input + "=FILE");
  return inQuotes(path) + " feeds integers [" + std::to_string(shape[0]) +
         ", " + std::to_string(shape[1]) +
         "] that are tokens, labels or a mask, and " + inQuotes(input) +
         " is none of them";
}

std::string DataFeed::labelWarning(const Executable &executable,
                                   const RunOptions &options,
                                   const Inputs &files) const {
  const std::string &labels = executable.unshiftedLabels;
  const Input *fed = find(labels);
  if (!options.dataLabels.empty() || !fed || fed->array || files.find(labels))
    return "";
  return "input " + inQuotes(labels) +
         " gets the same tokens as the model, because cross_entropy does not "
         "shift labels: say --data-labels next to train the model to predict "
         "the next token, or --data-labels same if this is meant";
}

std::unique_ptr<HostTask>
DataFeed::prepare(const ReadCommand &read, const Coordinates &coordinates,
                  Memory &memory, Address target,
                  const int64_t &finishedSteps) const {
  const Input &fed = *find(read.name);
  if (fed.isRowMask)
    return feedMask(order, read, coordinates, memory, finishedSteps);
  if (fed.array)
    return feedArray(*fed.array, fed.dim, order, fed.isIgnored, read,
                     coordinates, memory.ifRemote(target), finishedSteps);
  return feedTokens(tokens, fed.content, order, fed.isIgnored, read,
                    coordinates, memory, finishedSteps);
}

} // namespace accel::rt
