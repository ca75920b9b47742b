// Random layouts, and their flags.

#include "Layout.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace accel;
using namespace accel::fuzz;
using llvm::StringRef;

int64_t Layout::sizeOf(StringRef axis) const {
  for (const Axis &each : axes)
    if (each.name == axis)
      return each.size;
  return 1;
}

int64_t Layout::countRanks() const {
  int64_t count = 1;
  for (const Axis &axis : axes)
    count *= axis.size;
  return count;
}

int64_t Layout::countParts() const {
  return microBatches * sizeOf("dp_replicate") * sizeOf("dp_shard") *
         sizeOf("ep");
}

std::string Layout::getMesh() const {
  std::string text;
  for (const Axis &axis : axes)
    text +=
        (text.empty() ? "" : ",") + axis.name + "=" + std::to_string(axis.size);
  return text;
}

static void append(std::string &text, const llvm::Twine &flag) {
  text += (text.empty() ? "" : " ") + flag.str();
}

std::string Layout::getFlags() const {
  std::string text;
  if (!axes.empty())
    append(text, "--mesh " + getMesh());
  if (microBatches > 1)
    append(text, "--micro-batches " + llvm::Twine(microBatches));
  if (!schedule.empty())
    append(text, "--schedule " + schedule);
  for (const std::string &setting : settings)
    append(text, "--set " + setting);
  return text;
}

std::string Update::getFlags() const {
  std::string text = "--optimizer " + optimizer;
  if (!mixedPrecision.empty())
    append(text, "--mixed-precision " + mixedPrecision);
  if (!metrics.empty())
    append(text, "--metrics " + metrics);
  for (const std::string &dim : batchDims)
    append(text, "--batch-dim " + dim);
  for (const std::string &setting : settings)
    append(text, "--set " + setting);
  return text;
}

/// Beside those that most programs have; each so that a gradient which is 0 but
/// for rounding moves nothing.
static const std::pair<const char *, std::vector<std::string>> kOthers[] = {
    {"muon", {"optimizer.lr=0.1", "optimizer.eps=0.01"}},
    {"lamb", {"optimizer.lr=0.1", "optimizer.eps=0.01"}},
    {"lars", {"optimizer.lr=0.1", "optimizer.weight_decay=0.01"}},
    {"adafactor", {"optimizer.lr=0.1", "optimizer.eps1=0.01"}},
    {"rmsprop", {"optimizer.eps=0.01", "optimizer.centered=true"}},
    {"nadam", {"optimizer.eps=0.01", "optimizer.weight_decay=0.01"}},
    {"radam", {"optimizer.eps=0.01"}},
    {"adamw_8bit", {"optimizer.eps=0.01", "optimizer.min_8bit_size=2"}},
    {"schedule_free_adamw", {"optimizer.eps=0.01"}},
    {"adagrad", {"optimizer.eps=0.01"}},
    {"adamw", {"optimizer.eps=0.01", "groups[*].lr=0.002"}}};

Update fuzz::makeUpdate(Random &random) {
  Update update;
  switch (random.below(8)) {
  case 0:
    update.optimizer = "adamw";
    update.settings = {"optimizer.lr=0.1", "optimizer.eps=0.01"};
    break;
  case 1:
    update.settings = {"optimizer.lr=0.5", "optimizer.momentum=0.9",
                       "optimizer.weight_decay=0.01"};
    break;
  case 2:
    std::tie(update.optimizer, update.settings) =
        kOthers[random.below(std::size(kOthers))];
    break;
  default:
    break;
  }
  if (random.chance(25))
    update.settings.push_back("gradient_clipping=0.5");
  if (random.chance(15))
    update.settings.insert(update.settings.end(),
                           {"scaler.type=torch", "scaler.init_scale=8",
                            "scaler.growth_interval=1"});
  // Drawn of a copy: the updates of a seed are otherwise what they were.
  Random more = random;
  if (more.chance(20))
    update.settings.push_back(std::string("comm_hook=") +
                              more.pick({"fp16", "bf16"}));
  if (more.chance(15)) {
    update.mixedPrecision = "bf16";
    update.settings.push_back(std::string("autocast.lists=") +
                              more.pick({"cuda", "cpu"}));
  }
  return update;
}

bool fuzz::quantize(Random &random, Update &update, int64_t rows) {
  update.mixedPrecision = "fp8";
  llvm::erase_if(update.settings, [](StringRef setting) {
    return setting.starts_with("autocast.");
  });
  // Codes are rounded when results are compared, and then a wire would be, too.
  llvm::erase_if(update.settings, Update::isOfWire);
  if (Random own = random; own.chance(30))
    update.metrics = "precision";
  // Drawn of a copy: the recipes of a seed are otherwise what they were.
  Random more = random;
  if (more.chance(35)) {
    // Each row of the batch has a scale at first, whoever has it, and in some
    // its gradients are rounded before they are added up.
    update.settings.insert(
        update.settings.end(),
        {update.optimizer == "adamw" ? "fp8.recipe=msamp_o2"
                                     : "fp8.recipe=msamp_o1",
         "fp8.blocks=" + std::to_string(rows),
         "fp8.gradient_parts=" + std::to_string(more.chance(50) ? rows : 1)});
    return true;
  }
  if (more.chance(25)) { // what is said of a tensor is said of the batch
    update.settings.insert(update.settings.end(),
                           {"fp8.recipe=nvfp4", "fp8.blocks=1",
                            more.pick({"fp8.stochastic_rounding=true",
                                       "fp8.stochastic_rounding=false",
                                       "fp8.random_hadamard_transform=false",
                                       "fp8.fp4_2d_quantization=false"})});
    return false;
  }
  if (random.chance(70))
    update.settings.insert(
        update.settings.end(),
        {"fp8.amax_history_len=" + std::to_string(random.between(1, 4)),
         random.pick({"fp8.margin=0", "fp8.format=e4m3",
                      "fp8.amax_compute_algo=most_recent"})});
  else // rows of a batch have a scale each
    update.settings.insert(
        update.settings.end(),
        {"fp8.recipe=rowwise_with_gw_hp",
         random.pick({"fp8.skip_first_last=false", "fp8.skip=w"})});
  return true;
}

/// A random factorisation of a number of ranks over axes.
static std::vector<Layout::Axis> makeAxes(Random &random) {
  static const StringRef names[] = {
      "dp_shard", "dp_shard", "dp_shard", "dp_replicate", "dp_replicate", "tp",
      "tp",       "cp",       "cp",       "sp",           "ep",           "pp"};
  int64_t ranks = random.pick<int64_t>({2, 2, 2, 3, 4, 4, 4, 6, 8, 8});
  std::vector<Layout::Axis> axes;
  while (ranks > 1) {
    int64_t size = ranks % 2 == 0 ? 2 : 3;
    while (ranks % (size * 2) == 0 && random.chance(35))
      size *= 2;
    StringRef name = names[random.below(std::size(names))];
    auto found = llvm::find_if(
        axes, [&](const Layout::Axis &axis) { return axis.name == name; });
    if (found != axes.end())
      found->size *= size;
    else
      axes.push_back({name.str(), size});
    ranks /= size;
  }
  return axes;
}

static std::string makeSchedule(Random &random, const Layout &layout) {
  if (layout.sizeOf("pp") > 1)
    return random.pick({"", "gpipe", "1f1b", "eager-1f1b", "interleaved:2",
                        "zb-h1", "zb-h2", "zbv", "dualpipev", "auto"});
  if (layout.microBatches > 1 && random.chance(25))
    return random.chance(50) ? "gpipe" : "1f1b:2";
  return "";
}

static Layout makeAny(Random &random) {
  Layout layout;
  if (random.chance(92))
    layout.axes = makeAxes(random);
  layout.microBatches = random.pick<int64_t>({1, 1, 1, 1, 2, 2, 3, 4});
  layout.schedule = makeSchedule(random, layout);
  int64_t shards = layout.sizeOf("dp_shard");
  int64_t sequences = layout.sizeOf("cp") * layout.sizeOf("sp");
  int64_t stage = shards > 1      ? random.between(1, 3)
                  : sequences > 1 ? random.pick<int64_t>({0, 3})
                                  : 0;
  auto set = [&](const char *name, llvm::Twine value) {
    layout.settings.push_back((name + ("=" + value)).str());
  };
  if (stage)
    set("zero_stage", llvm::Twine(stage));
  if (stage == 3 && random.chance(20))
    set("zero.gather_once", "true");
  if (stage == 3 && shards >= 4 && sequences == 1 && random.chance(20))
    set("zero.hpz_partition_size", "2");
  if (layout.sizeOf("tp") > 1 && random.chance(30))
    set("sequence_parallelism", "true");
  if (layout.sizeOf("tp") > 1 && random.chance(15))
    set("tp.vocabulary", "false");
  if (layout.sizeOf("cp") > 1 && random.chance(50))
    set("cp.strategy", "ring");
  if (random.chance(15))
    set("offload.optimizer", "cpu");
  if (random.chance(15))
    set("offload.parameters", "cpu");
  if (random.chance(15))
    set("offload.activations", "cpu");
  return layout;
}

Layout fuzz::makeLayout(Random &random, Sizes sizes) {
  bool fits = random.chance(96);
  Layout layout;
  for (int attempt = 0; attempt < 200; ++attempt) {
    layout = makeAny(random);
    int64_t sequences = layout.sizeOf("cp") * layout.sizeOf("sp");
    if (!fits || (sizes.rows % layout.countParts() == 0 &&
                  sizes.length % sequences == 0))
      break;
  }
  // Drawn of a copy: the layouts of a seed are otherwise what they were.
  Random more = random;
  if (more.chance(30))
    layout.settings.push_back(std::string("recompute=") +
                              more.pick({"full", "full", "full:uniform:2",
                                         "full:block:1", "m.*[02468]"}));
  bool isStaged = llvm::any_of(layout.settings, [](const std::string &each) {
    return each == "offload.optimizer=cpu" || each == "offload.parameters=cpu";
  });
  if (isStaged && more.chance(60))
    layout.settings.push_back(std::string("offload.tile=") +
                              more.pick({"2", "5", "16", "40"}));
  return layout;
}

llvm::LogicalResult fuzz::parseFlags(StringRef text, Update &update,
                                     Layout &layout) {
  update.settings.clear();
  update.batchDims.clear();
  update.mixedPrecision.clear();
  update.metrics.clear();
  layout = Layout();
  llvm::SmallVector<StringRef> words;
  llvm::SplitString(text, words);
  for (size_t at = 0; at + 1 < words.size(); at += 2) {
    StringRef flag = words[at], value = words[at + 1];
    if (flag == "--mesh") {
      llvm::SmallVector<StringRef> axes;
      value.split(axes, ',');
      for (StringRef axis : axes) {
        auto [name, number] = axis.split('=');
        int64_t size;
        if (number.getAsInteger(10, size))
          return llvm::failure();
        layout.axes.push_back({name.str(), size});
      }
    } else if (flag == "--micro-batches") {
      if (value.getAsInteger(10, layout.microBatches))
        return llvm::failure();
    } else if (flag == "--schedule") {
      layout.schedule = value.str();
    } else if (flag == "--batch-dim") {
      update.batchDims.push_back(value.str());
    } else if (flag == "--mixed-precision") {
      update.mixedPrecision = value.str();
    } else if (flag == "--metrics") {
      update.metrics = value.str();
    } else if (flag == "--optimizer") {
      update.optimizer = value.str();
    } else if (flag == "--set") {
      bool ofUpdate =
          value.starts_with("optimizer.") || value.starts_with("groups[") ||
          value.starts_with("scaler.") || value.starts_with("fp8.") ||
          value.starts_with("autocast.") || Update::isOfWire(value) ||
          value.starts_with("gradient_clipping");
      (ofUpdate ? update.settings : layout.settings).push_back(value.str());
    } else {
      return llvm::failure();
    }
  }
  return llvm::success(words.size() % 2 == 0);
}
