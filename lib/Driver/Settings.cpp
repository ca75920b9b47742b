// Which option of which pass obeys a setting: a row each, and nothing else
// between a config key and the pass but its row in lib/Config/Settings.cpp.

#include "Settings.h"

#include "llvm/ADT/STLExtras.h"

using namespace llvm;
using namespace accel::driver;

namespace {
/// Where the text of a setting goes: a reader per type that options have.
class Into {
public:
  Into(int64_t &option)
      : expectation("an integer"), read([&option](StringRef text) {
          return !text.getAsInteger(10, option);
        }) {}
  Into(bool &option)
      : expectation("true or false"), read([&option](StringRef text) {
          option = text == "true";
          return option || text == "false";
        }) {}
  Into(bool &option, StringLiteral off, StringLiteral on, StringLiteral either)
      : expectation(either), read([&option, off, on](StringRef text) {
          option = text == on;
          return option || text == off;
        }) {}

  /// One of some words, separated by ','.
  Into(std::string &option, StringLiteral words)
      : expectation(words), read([&option, words](StringRef text) {
          SmallVector<StringRef> each;
          words.split(each, ',');
          option = text.str();
          return is_contained(each, text);
        }) {}

  StringRef expectation;
  std::function<bool(StringRef)> read;
};

struct Row {
  StringLiteral name;
  Into (*option)(PhaseOptions &);
};
} // namespace

static constexpr Row kRows[] = {
    {"zero_stage",
     [](PhaseOptions &o) -> Into { return o.place.shardStates.stage; }},
    {"zero.gather_once",
     [](PhaseOptions &o) -> Into { return o.place.placeGathers.once; }},
    {"zero.hpz_partition_size",
     [](PhaseOptions &o) -> Into { return o.place.annotate.secondary; }},
    {"sequence_parallelism",
     [](PhaseOptions &o) -> Into { return o.place.scatterSums.enabled; }},
    {"cp.strategy",
     [](PhaseOptions &o) -> Into {
       return {o.place.markRings.enabled, "allgather", "ring",
               "allgather or ring"};
     }},
    {"tp.vocabulary",
     [](PhaseOptions &o) -> Into { return o.place.splitWeights.vocabulary; }},
    {"comm_hook",
     [](PhaseOptions &o) -> Into {
       return {o.wire.hook, "no,fp16,bf16"};
     }},
    {"sharding.strict", [](PhaseOptions &o) -> Into { return o.place.strict; }},
};

static const Row *findRow(StringRef name) {
  return find_if(kRows, [&](const Row &row) { return row.name == name; });
}

bool accel::driver::isPhaseSetting(StringRef name) {
  return findRow(name) != std::end(kRows);
}

Error accel::driver::applySetting(PhaseOptions &options, StringRef name,
                                  StringRef value) {
  assert(isPhaseSetting(name) && "no pass obeys it");
  Into option = findRow(name)->option(options);
  if (option.read(value))
    return Error::success();
  return createStringError(inconvertibleErrorCode(),
                           "expected " + option.expectation + " as '" + name +
                               "', found '" + value + "'");
}
