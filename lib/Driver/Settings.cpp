// Which option of which pass obeys a setting: a row each, and nothing else
// between a config key and the pass but its row in lib/Config/Settings.cpp.

#include "Settings.h"

#include "dialects/Dist/ScheduleKind.h"
#include "lib/Names/Bytes.h"
#include "lib/Names/RecomputePolicy.h"
#include "lib/Pipeline/NamedSchedules.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/GlobPattern.h"

#include <cmath>

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
  Into(double &option)
      : expectation("a number of at least 0"), read([&option](StringRef text) {
          return !text.getAsDouble(option) && std::isfinite(option) &&
                 option >= 0;
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

  /// One of two words, separated by ','; the second says true.
  Into(bool &option, StringLiteral words)
      : expectation(words), read([&option, words](StringRef text) {
          auto [off, on] = words.split(',');
          option = text == on;
          return option || text == off;
        }) {}

  /// One of some words, separated by ','; of which the option may have others.
  Into(std::string &option, StringLiteral words, StringLiteral values)
      : expectation(words), read([&option, words, values](StringRef text) {
          SmallVector<StringRef> each, their;
          words.split(each, ',');
          values.split(their, ',');
          auto found = find(each, text);
          if (found == each.end())
            return false;
          option = their[found - each.begin()].str();
          return true;
        }) {}
  Into(std::string &option, StringLiteral words) : Into(option, words, words) {}

  /// Whether weights are gathered once a step; auto: a budget decides.
  Into(bool &option, bool &isOpen)
      : expectation("true, false or auto"),
        read([&option, &isOpen](StringRef text) {
          option = text == "true";
          isOpen = text == "auto";
          return option || isOpen || text == "false";
        }) {}

  /// A folder: acc-run is started in others than acc-opt.
  struct Path {};
  Into(std::string &option, Path)
      : expectation("a path that begins with '/'"),
        read([&option](StringRef text) {
          option = text.str();
          return text.starts_with("/");
        }) {}

  /// true or false, which it has neither of where nothing is said.
  Into(std::optional<bool> &option)
      : expectation("true or false"), read([&option](StringRef text) {
          option = text == "true";
          return *option || text == "false";
        }) {}

  /// Glob patterns.
  Into(SmallVectorImpl<std::string> &option)
      : expectation("glob patterns, separated by ','"),
        read([&option](StringRef text) {
          SmallVector<StringRef> patterns;
          text.split(patterns, ',');
          option.assign(patterns.begin(), patterns.end());
          return all_of(patterns, [](StringRef pattern) {
            Expected<GlobPattern> glob = GlobPattern::create(pattern);
            return !pattern.empty() && !errorToBool(glob.takeError());
          });
        }) {}

  /// true or false for each kind of product.
  struct ProductKinds {};
  Into(std::string &option, ProductKinds)
      : expectation("true or false for each of fprop, dgrad and wgrad"),
        read([&option](StringRef text) {
          option = text.str();
          SmallVector<StringRef> words;
          text.split(words, ',');
          return words.size() == 3 && all_of(words, [](StringRef word) {
                   return word == "true" || word == "false";
                 });
        }) {}

  /// A schedule.
  explicit Into(std::string &option)
      : expectation("the name of a schedule (--schedule)"),
        read([&option](StringRef text) {
          option = text.str();
          return isSchedule(text);
        }) {}

  /// What the backward computes again.
  explicit Into(accel::parallel::MarkRecomputedPassOptions &option)
      : expectation("a policy (--recompute)"), read([&option](StringRef text) {
          option.policy = text.str();
          return !errorToBool(checkRecompute(text));
        }) {}

  /// What a rank may have.
  struct Budget {};
  Into(std::string &option, Budget)
      : expectation("a budget (--memory-budget)"),
        read([&option](StringRef text) {
          option = text.str();
          return !errorToBool(checkMemoryBudget(text));
        }) {}

  /// How many chunks of its rows a loss is taken in.
  explicit Into(accel::parallel::MarkLossChunksPassOptions &option)
      : expectation("auto, none or a number of at least 2"),
        read([&option](StringRef text) {
          option.chunks = text.str();
          int64_t number = 0;
          return text == "auto" || text == "none" ||
                 (!text.getAsInteger(10, number) && number >= 2);
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
     [](PhaseOptions &o) -> Into {
       return {o.decide.gatherOnce, o.fitMemory.gathersOpen};
     }},
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
       return {o.wire.hook, "no,fp16,bf16,power_sgd"};
     }},
    {"autocast.lists",
     [](PhaseOptions &o) -> Into {
       return {o.autocast.lists, "none,cuda,cpu"};
     }},
    {"batch_norm.scope",
     [](PhaseOptions &o) -> Into {
       return {o.batchNormScope, "micro_batch,rank,batch"};
     }},
    {"batch_norm.parts",
     [](PhaseOptions &o) -> Into { return o.batchNormParts; }},
    {"fp8.recipe",
     [](PhaseOptions &o) -> Into {
       return {o.fp8.quantize.recipe,
               "delayed,current,block,mxfp8,nvfp4,tensorwise,rowwise,"
               "rowwise_with_gw_hp,msamp_o1,msamp_o2"};
     }},
    {"fp8.format",
     [](PhaseOptions &o) -> Into {
       return {o.fp8.quantize.format, "hybrid,e4m3"};
     }},
    {"fp8.margin",
     [](PhaseOptions &o) -> Into { return o.fp8.quantize.margin; }},
    {"fp8.amax_history_len",
     [](PhaseOptions &o) -> Into { return o.fp8.quantize.historyLength; }},
    {"fp8.amax_compute_algo",
     [](PhaseOptions &o) -> Into {
       return {o.fp8.quantize.amax, "max,most_recent"};
     }},
    {"fp8.interval",
     [](PhaseOptions &o) -> Into { return o.fp8.quantize.interval; }},
    {"fp8.override_linear_precision",
     [](PhaseOptions &o) -> Into {
       return {o.fp8.quantize.overrides, Into::ProductKinds()};
     }},
    {"fp8.blocks",
     [](PhaseOptions &o) -> Into { return o.fp8.quantize.blocks; }},
    {"fp8.gradient_parts",
     [](PhaseOptions &o) -> Into { return o.fp8.quantize.gradientParts; }},
    {"fp8.power_2_scale",
     [](PhaseOptions &o) -> Into {
       return {o.fp8.quantize.power2, "true,false"};
     }},
    {"fp8.random_hadamard_transform",
     [](PhaseOptions &o) -> Into { return o.fp8.quantize.hadamard; }},
    {"fp8.stochastic_rounding",
     [](PhaseOptions &o) -> Into { return o.fp8.quantize.stochastic; }},
    {"fp8.fp4_2d_quantization",
     [](PhaseOptions &o) -> Into { return o.fp8.quantize.tiles; }},
    {"fp8.only", [](PhaseOptions &o) -> Into { return o.fp8.tag.only; }},
    {"fp8.skip", [](PhaseOptions &o) -> Into { return o.fp8.tag.skip; }},
    {"fp8.skip_first_last",
     [](PhaseOptions &o) -> Into { return o.fp8.skipsOuter; }},
    {"fp8.use_autocast_during_eval",
     [](PhaseOptions &o) -> Into { return o.fp8.tag.evaluates; }},
    {"power_sgd.matrix_approximation_rank",
     [](PhaseOptions &o) -> Into { return o.train.factor.rank; }},
    {"power_sgd.start_powerSGD_iter",
     [](PhaseOptions &o) -> Into { return o.train.factor.start; }},
    {"power_sgd.min_compression_rate",
     [](PhaseOptions &o) -> Into { return o.train.factor.minCompressionRate; }},
    {"power_sgd.use_error_feedback",
     [](PhaseOptions &o) -> Into { return o.train.factor.useErrorFeedback; }},
    {"power_sgd.warm_start",
     [](PhaseOptions &o) -> Into { return o.train.factor.warmStart; }},
    {"power_sgd.orthogonalization_epsilon",
     [](PhaseOptions &o) -> Into {
       return o.train.factor.orthogonalizationEpsilon;
     }},
    {"power_sgd.random_seed",
     [](PhaseOptions &o) -> Into { return o.train.factor.randomSeed; }},
    {"schedule",
     [](PhaseOptions &o) -> Into { return Into(o.decide.schedule); }},
    {"loss_chunks", [](PhaseOptions &o) -> Into { return Into(o.lossChunks); }},
    {"recompute", [](PhaseOptions &o) -> Into { return Into(o.recompute); }},
    {"memory_budget",
     [](PhaseOptions &o) -> Into {
       return {o.decide.budget, Into::Budget()};
     }},
    {"offload.host_budget",
     [](PhaseOptions &o) -> Into {
       return {o.decide.hostBudget, Into::Budget()};
     }},
    {"offload.nvme_budget",
     [](PhaseOptions &o) -> Into {
       return {o.decide.nvmeBudget, Into::Budget()};
     }},
    {"offload.optimizer",
     [](PhaseOptions &o) -> Into {
       return {o.plan.offloaded.optimizer, "none,cpu,nvme,auto",
               "none,host,nvme,auto"};
     }},
    {"offload.parameters",
     [](PhaseOptions &o) -> Into {
       return {o.plan.offloaded.parameters, "none,cpu,nvme,auto",
               "none,host,nvme,auto"};
     }},
    {"offload.activations",
     [](PhaseOptions &o) -> Into {
       return {o.plan.activations.space, "none,cpu,nvme,auto",
               "none,host,nvme,auto"};
     }},
    {"offload.ratio",
     [](PhaseOptions &o) -> Into { return o.plan.offloaded.ratio; }},
    {"offload.buffer_count",
     [](PhaseOptions &o) -> Into { return o.plan.offload.bufferCount; }},
    {"offload.tile", [](PhaseOptions &o) -> Into { return o.plan.tiles.tile; }},
    {"offload.nvme_path",
     [](PhaseOptions &o) -> Into {
       return {o.plan.allocate.storagePath, Into::Path()};
     }},
    {"offload.max_in_cpu",
     [](PhaseOptions &o) -> Into { return o.plan.offloaded.mostOnHost; }},
    {"aio.block_size",
     [](PhaseOptions &o) -> Into { return o.plan.allocate.blockSize; }},
    {"aio.queue_depth",
     [](PhaseOptions &o) -> Into { return o.plan.allocate.queueDepth; }},
    {"sharding.strict", [](PhaseOptions &o) -> Into { return o.place.strict; }},
};

static const Row *findRow(StringRef name) {
  return find_if(kRows, [&](const Row &row) { return row.name == name; });
}

bool accel::driver::isSchedule(StringRef name) {
  if (dist::ScheduleKind::parse(name))
    return true;
  auto ofStages = pipeline::parseChoice(name);
  if (ofStages)
    return true;
  consumeError(ofStages.takeError());
  return false;
}

Error accel::driver::checkRecompute(StringRef policy) {
  return RecomputePolicy::parse(policy).takeError();
}

Error accel::driver::checkMemoryBudget(StringRef budget) {
  return MemoryBudget::parse(budget).takeError();
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

/// Its lists choose types of 16 bits.
static Error checkAutocast(const PhaseOptions &options) {
  const std::string &lists = options.autocast.lists,
                    &mixed = options.train.mixedPrecision;
  if (lists == "none" || mixed == "bf16" || mixed == "fp16")
    return Error::success();
  return createStringError(
      inconvertibleErrorCode(),
      "expected '--mixed-precision=bf16' or fp16 with 'autocast.lists=" +
          lists + "', found " + (mixed.empty() ? "none" : "'" + mixed + "'") +
          (mixed == "fp8"
               ? ", which quantizes products of float32 activations alone"
               : ""));
}

Error accel::driver::checkIsRead(const PhaseOptions &options,
                                 StringRef setting) {
  StringRef name = setting.split('=').first;
  const auto &offloaded = options.plan.offloaded;
  auto isAny = [&](StringRef where) {
    return offloaded.optimizer == where || offloaded.parameters == where;
  };
  bool mayBeInFile = isAny("nvme") || isAny("auto") ||
                     options.plan.activations.space == "nvme" ||
                     options.plan.activations.space == "auto";
  auto refuse = [](const Twine &message) {
    return createStringError(inconvertibleErrorCode(), message);
  };
  if (name.starts_with("fp8.") && options.train.mixedPrecision != "fp8")
    return refuse("expected '--mixed-precision=fp8' with '" + name + "'");
  if (name == "autocast.lists")
    return checkAutocast(options);
  if (name == "batch_norm.scope" && options.batchNormParts > 0)
    return refuse("expected one of 'batch_norm.scope' and 'batch_norm.parts', "
                  "found both");
  if (setting == "batch_norm.scope=batch" &&
      options.place.annotate.microBatches > 1)
    return refuse("expected one micro-batch with 'batch_norm.scope=batch', "
                  "found " +
                  Twine(options.place.annotate.microBatches) +
                  ": they run one after another, and none has the statistics "
                  "of all; use batch_norm.scope=micro_batch, which takes each "
                  "micro-batch's");
  const std::string &recipe = options.fp8.quantize.recipe;
  if (name == "fp8.blocks" && recipe == "delayed")
    return refuse("expected 'fp8.recipe=current' (or tensorwise) with "
                  "'fp8.blocks', found 'delayed', whose scales are those of "
                  "the whole batch");
  if (name == "fp8.blocks" && recipe == "rowwise_with_gw_hp")
    return refuse("expected 'fp8.recipe=current' (or tensorwise, rowwise) with "
                  "'fp8.blocks', found 'rowwise_with_gw_hp', whose scales are "
                  "those of single rows and of weights");
  if (recipe != "nvfp4" &&
      (name == "fp8.random_hadamard_transform" ||
       name == "fp8.stochastic_rounding" || name == "fp8.fp4_2d_quantization"))
    return refuse("expected 'fp8.recipe=nvfp4' with '" + name + "', found '" +
                  recipe + "'");
  if ((name == "offload.buffer_count" || name == "offload.tile") &&
      !isAny("host") && !isAny("nvme") && !isAny("auto"))
    return refuse("expected 'offload.optimizer=cpu' or "
                  "'offload.parameters=cpu' (or nvme) with '" +
                  name + "', found 'none'");
  if (name == "offload.ratio" && offloaded.optimizer == "none")
    return refuse("expected 'offload.optimizer=cpu' (or nvme) with '" + name +
                  "', found 'none'");
  if (name == "offload.max_in_cpu" && offloaded.parameters != "nvme" &&
      offloaded.parameters != "auto")
    return refuse("expected 'offload.parameters=nvme' with '" + name +
                  "', found '" + offloaded.parameters + "'");
  if ((name == "offload.nvme_path" || name.starts_with("aio.")) && !mayBeInFile)
    return refuse("expected 'offload.optimizer=nvme' or "
                  "'offload.parameters=nvme' with '" +
                  name + "', found 'none'");
  if ((name == "offload.optimizer" || name == "offload.parameters" ||
       name == "offload.activations") &&
      setting.ends_with("=nvme") && options.plan.allocate.storagePath.empty())
    return refuse("expected the folder of the file that it lies in "
                  "(--set offload.nvme_path=DIR) with '" +
                  name + "=nvme', found none");
  if (!name.starts_with("power_sgd.") || options.wire.hook == "power_sgd")
    return Error::success();
  return createStringError(inconvertibleErrorCode(),
                           "expected 'comm_hook=power_sgd' with '" + name +
                               "', found '" + options.wire.hook + "'");
}

Error accel::driver::checkTogether(const PhaseOptions &options) {
  if (Error error = checkAutocast(options))
    return error;
  if (options.train.mixedPrecision != "fp8")
    return Error::success();
  precision::QuantizeProductsPassOptions quantize = options.fp8.quantize;
  // The layout says how many.
  if (quantize.gradientParts == 0)
    quantize.gradientParts = 1;
  if (quantize.blocks == 0)
    quantize.blocks = quantize.gradientParts;
  return precision::checkQuantizeOptions(quantize);
}
