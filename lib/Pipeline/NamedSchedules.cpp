// The table of named schedules, and reading a name.

#include "NamedSchedules.h"
#include "Generators.h"
#include "llvm/ADT/StringExtras.h"

using namespace llvm;

namespace accel::pipeline {
namespace {

Placement placeVee(int64_t ranks, int64_t) { return Placement::vee(ranks); }

constexpr NamedSchedule kNamed[] = {
    {"gpipe", 1, Placement::interleaved, orderGPipe, false},
    {"1f1b", 1, Placement::interleaved, order1F1B, false},
    {"eager-1f1b", 1, Placement::interleaved, orderEager1F1B, false},
    {"interleaved", 0, Placement::interleaved, orderInterleaved, false},
    {"zb-h1", 1, Placement::interleaved, orderZBH1, true},
    {"zb-h2", 1, Placement::interleaved, orderZBH2, true},
    {"zbv", 2, placeVee, orderZBV, true},
    {"dualpipev", 2, placeVee, orderDualPipeV, true},
};

} // namespace

ArrayRef<NamedSchedule> getNamedSchedules() { return kNamed; }

Expected<Choice> parseChoice(StringRef text) {
  if (text == "auto")
    return Choice();
  auto [name, count] = text.split(':');
  for (const NamedSchedule &named : kNamed) {
    if (named.name != name)
      continue;
    if (named.chunksPerRank == 0) {
      int64_t chunks;
      if (count.getAsInteger(10, chunks) || chunks < 2)
        return createStringError("expected '" + name +
                                 ":V' with V chunks on each rank, 2 or more, "
                                 "got '" +
                                 text + "'");
      return Choice{&named, chunks};
    }
    if (text != name)
      return createStringError("expected '" + name + "' alone, got '" + text +
                               "'");
    return Choice{&named, named.chunksPerRank};
  }
  std::string names;
  for (const NamedSchedule &named : kNamed)
    names += (named.name + (named.chunksPerRank == 0 ? ":V" : "") +
              (&named == std::prev(std::end(kNamed)) ? " or auto" : ", "))
                 .str();
  return createStringError("unknown schedule '" + text + "', expected " +
                           names);
}

Error checkShape(StringRef schedule, Shape shape) {
  const std::pair<const char *, int64_t> sizes[] = {
      {"ranks", shape.ranks},
      {"chunks on a rank", shape.chunksPerRank},
      {"micro-batches", shape.microBatches}};
  for (auto [what, count] : sizes)
    if (count < 1)
      return createStringError("schedule '" + schedule +
                               "' expects 1 or more " + what + ", got " +
                               Twine(count));
  int64_t most = kMostChunksOfBatches;
  for (auto [what, count] : sizes)
    most /= count; // each rounds down: the product is more than that or not
  if (most < 1)
    return createStringError(
        "expected a schedule of at most " + Twine(kMostChunksOfBatches) +
        " micro-batches in all chunks of all ranks, found " +
        Twine(shape.ranks) + " ranks of " + Twine(shape.chunksPerRank) +
        " chunks for " + Twine(shape.microBatches) + " micro-batches");
  return Error::success();
}

Expected<Schedule> generate(const NamedSchedule &named, Shape shape) {
  if (Error error = checkShape(named.name, shape))
    return std::move(error);
  Schedule schedule;
  schedule.placement = named.place(shape.ranks, shape.chunksPerRank);
  schedule.microBatches = shape.microBatches;
  for (int64_t rank = 0; rank < shape.ranks; ++rank)
    schedule.ranks.push_back(named.order(shape, rank));
  return schedule;
}

} // namespace accel::pipeline
