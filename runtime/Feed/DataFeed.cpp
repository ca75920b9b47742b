// Which inputs get what, and the task that fills them.

#include "Feed/DataFeed.h"

#include "Feed/InputOutput.h"

#include <algorithm>
#include <chrono>
#include <cstring>

namespace accel::rt {
namespace {

/// What a label is that a loss does not count.
constexpr int64_t kIgnored = -100;

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

} // namespace

/// Fills one rank's piece for one micro-batch.
class DataFeed::FeedTask : public HostTask {
public:
  FeedTask(const DataFeed &feed, Content content, const ReadCommand &read,
           Coordinates coordinates, Memory &memory,
           const int64_t &finishedSteps)
      : feed(feed), content(content), read(read), memory(memory),
        first(pieceStart(read.part, read.target.shape, coordinates, 0)),
        second(pieceStart(read.part, read.target.shape, coordinates, 1)),
        finishedSteps(finishedSteps) {}

  Status run(const Address *views, int64_t microBatch) override {
    const View &view = read.target;
    auto start = [&](int dim) {
      return first[dim] + microBatch * (second[dim] - first[dim]);
    };
    for (int64_t row = 0; row < view.shape[0]; ++row) {
      auto sample = static_cast<int64_t>(
          feed.order.sampleAt(static_cast<uint64_t>(finishedSteps),
                              static_cast<uint64_t>(start(0) + row)));
      for (int64_t column = 0; column < view.shape[1];) {
        int64_t count = std::min(TokenFile::kMaxRead, view.shape[1] - column);
        int64_t values[TokenFile::kMaxRead];
        ACCEL_RT_RETURN_IF_ERROR(get(sample, start(1) + column, count, values));
        ACCEL_RT_RETURN_IF_ERROR(
            store(views[0], row * view.strides[0] + column * view.strides[1],
                  values, count));
        column += count;
      }
    }
    return Status();
  }

private:
  Status get(int64_t sample, int64_t begin, int64_t count, int64_t *values) {
    if (content == Content::Ones) {
      std::fill_n(values, count, 1);
      return Status();
    }
    if (content == Content::Tokens)
      return feed.tokens.read(sample, begin, count, values);
    int64_t known = std::min(count, feed.shape[1] - begin - 1);
    std::fill(values + known, values + count, kIgnored);
    return feed.tokens.read(sample, begin + 1, known, values);
  }
  /// Stores values of a row from the element `offset` of the view on.
  Status store(Address base, int64_t offset, const int64_t *values,
               int64_t count) const {
    int64_t stride = read.target.strides[1];
    if (read.target.dtype == DType::I64)
      return memory.upload(base + offset * 8, values,
                           Rows::ofElements(8, count, stride, 1));
    // Out of range for the model, and so refused by its kernels.
    int32_t narrow[TokenFile::kMaxRead];
    std::transform(values, values + count, narrow, [](int64_t value) {
      return static_cast<int32_t>(
          std::clamp<int64_t>(value, INT32_MIN, INT32_MAX));
    });
    return memory.upload(base + offset * 4, narrow,
                         Rows::ofElements(4, count, stride, 1));
  }

  const DataFeed &feed;
  Content content;
  const ReadCommand &read;
  Memory &memory;
  std::vector<int64_t> first, second;
  const int64_t &finishedSteps;
};

Status DataFeed::open(const std::vector<TensorPlan> &wanted,
                      const DataSource &source) {
  path = source.path;
  bool next = source.labels == "next";
  if (!source.labels.empty() && !next && source.labels != "same")
    return Status::error("expected same or next as --data-labels, found " +
                         inQuotes(source.labels));
  for (const TensorPlan &input : wanted) {
    if (!isIndex(input.dtype) || input.shape.size() != 2 ||
        contains(input.name, {"position", "type", "segment"}))
      continue;
    bool isLabel = contains(input.name, {"label", "target"});
    Content content = isLabel ? (next ? Content::NextTokens : Content::Tokens)
                      : contains(input.name, {"mask"}) ? Content::Ones
                                                       : Content::Tokens;
    if (shape.empty())
      shape = input.shape;
    if (input.shape == shape)
      inputs.push_back({input.name, content, isLabel});
  }
  if (inputs.empty())
    return Status::error("expected an input of integers [batch, length] for "
                         "the tokens of " +
                         inQuotes(path) + ", found none");
  ACCEL_RT_RETURN_IF_ERROR(tokens.open(path, source.type, shape[1]));
  order.samples = static_cast<uint64_t>(tokens.numSamples());
  order.batch = static_cast<uint64_t>(shape[0]);
  order.isShuffled = source.seed.has_value();
  order.seed = static_cast<uint64_t>(source.seed.value_or(0));
  return Status();
}

Status DataFeed::getCursor(bool hashed, const RunOptions &options,
                           DataCursor &cursor) const {
  cursor.samples = static_cast<int64_t>(order.samples);
  cursor.length = shape[1];
  cursor.batch = static_cast<int64_t>(order.batch);
  cursor.seed = static_cast<int64_t>(order.seed);
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
  return tokens.hash(tell, cursor.hash.emplace());
}

bool DataFeed::feeds(const std::string &input) const {
  return std::any_of(inputs.begin(), inputs.end(),
                     [&](const Input &fed) { return fed.name == input; });
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
        return fed.content == Content::Ones;
      });
  if (values.empty() || (givesOnes && look(1)))
    return Status();
  int64_t room[TokenFile::kMaxRead];
  for (int64_t sample = 0; sample < numSamples(); ++sample)
    for (int64_t begin = 0; begin < shape[1]; begin += TokenFile::kMaxRead) {
      int64_t count = std::min(TokenFile::kMaxRead, shape[1] - begin);
      ACCEL_RT_RETURN_IF_ERROR(tokens.read(sample, begin, count, room));
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

std::string DataFeed::whyNot(const std::string &input) const {
  return inQuotes(path) + " feeds integers [" + std::to_string(shape[0]) +
         ", " + std::to_string(shape[1]) +
         "] that are tokens, labels or a mask, and " + inQuotes(input) +
         " is none of them";
}

std::string DataFeed::labelWarning(const Executable &executable,
                                   const RunOptions &options,
                                   const Inputs &files) const {
  const std::string &labels = executable.unshiftedLabels;
  if (!options.dataLabels.empty() || !feeds(labels) || files.find(labels))
    return "";
  return "input " + inQuotes(labels) +
         " gets the same tokens as the model, because cross_entropy does not "
         "shift labels: say --data-labels next to train the model to predict "
         "the next token, or --data-labels same if this is meant";
}

std::unique_ptr<HostTask>
DataFeed::prepare(const ReadCommand &read, const Coordinates &coordinates,
                  Memory &memory, const int64_t &finishedSteps) const {
  auto fed = std::find_if(inputs.begin(), inputs.end(), [&](const Input &each) {
    return each.name == read.name;
  });
  return std::make_unique<FeedTask>(*this, fed->content, read, coordinates,
                                    memory, finishedSteps);
}

} // namespace accel::rt
