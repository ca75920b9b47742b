// How many ranks a command starts: what launchers, and Slurm, are told.

#include "lib/Config/Shell/Run.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Path.h"

using namespace llvm;
using namespace accel::config::shell;

Text accel::config::shell::valueOf(ArrayRef<Text> words,
                                   ArrayRef<StringRef> flags) {
  for (auto [i, word] : enumerate(words)) {
    auto [flag, value] = StringRef(word.text).split('=');
    bool hasValue = flag.size() < word.text.size();
    std::string spelt = flag.str();
    llvm::replace(spelt, '-', '_');
    for (StringRef one : flags) {
      std::string wanted = one.str();
      llvm::replace(wanted, '-', '_');
      if (spelt != wanted)
        continue;
      Text found = word;
      found.text = value.str();
      if (!hasValue)
        found = i + 1 < words.size() ? words[i + 1] : Text{};
      return found;
    }
  }
  return {};
}

Ranks accel::config::shell::countRanks(
    const Launch &launch, const std::map<std::string, std::string> &slurm) {
  ArrayRef<Text> words = ArrayRef(launch.words).take_front(launch.script);
  auto has = [&](ArrayRef<StringRef> names) {
    return any_of(words, [&](const Text &word) {
      return is_contained(names, sys::path::filename(word.text));
    });
  };
  auto known = [&](StringRef variable) {
    auto found = slurm.find(variable.str());
    return found == slurm.end() ? Text{} : Text{found->second, 1, {}};
  };
  if (has({"deepspeed"}))
    return {valueOf(words, {"--num_gpus"}), valueOf(words, {"--num_nodes"})};
  Ranks ranks{valueOf(words, {"--nproc_per_node"}),
              valueOf(words, {"--nnodes"})};
  bool startsMore = has({"torchrun", "torch.distributed.run",
                         "torch.distributed.launch", "accelerate"});
  if (startsMore || !ranks.ofMachine.text.empty())
    return ranks;
  if (has({"mpirun", "mpiexec"}))
    return {valueOf(words, {"-np", "-n", "--n"}), {}};
  if (!has({"srun"}))
    return ranks;
  // Each task of Slurm's is a rank.
  Text all = valueOf(words, {"-n", "--ntasks"});
  if (!all.text.empty())
    return {all, {}};
  ranks = {valueOf(words, {"--ntasks-per-node"}),
           valueOf(words, {"-N", "--nodes"})};
  if (ranks.ofMachine.text.empty())
    ranks.ofMachine = known("SLURM_NTASKS_PER_NODE");
  if (ranks.machines.text.empty())
    ranks.machines = known("SLURM_NNODES");
  if (ranks.ofMachine.text.empty() && ranks.machines.text.empty())
    return {known("SLURM_NTASKS"), {}};
  return ranks.ofMachine.text.empty() ? Ranks{} : ranks;
}

std::map<std::string, std::string>
accel::config::shell::variablesOfSlurm(StringRef text) {
  std::vector<Text> words;
  for (StringRef rest = text; !rest.empty();) {
    StringRef line;
    std::tie(line, rest) = rest.split('\n');
    line = line.trim();
    if (line.consume_front("#SBATCH")) {
      SmallVector<StringRef> parts;
      SplitString(line.split(" #").first, parts);
      for (StringRef part : parts)
        words.push_back({part.str(), 1, {}});
    } else if (!line.empty() && !line.starts_with("#")) {
      break; // Slurm stops reading there too
    }
  }
  std::map<std::string, std::string> result;
  auto put = [&](StringRef variable, ArrayRef<StringRef> flags) {
    std::string value = valueOf(words, flags).text;
    if (!value.empty() && all_of(value, isDigit))
      result[variable.str()] = value;
  };
  put("SLURM_NNODES", {"-N", "--nodes"});
  put("SLURM_NTASKS_PER_NODE", {"--ntasks-per-node"});
  put("SLURM_NTASKS", {"-n", "--ntasks"});
  put("SLURM_GPUS_PER_NODE", {"--gpus-per-node"});
  put("SLURM_CPUS_PER_TASK", {"-c", "--cpus-per-task"});
  if (auto nodes = result.find("SLURM_NNODES"); nodes != result.end()) {
    result["SLURM_JOB_NUM_NODES"] = nodes->second;
    int64_t count = 0, each = 0;
    auto tasks = result.find("SLURM_NTASKS_PER_NODE");
    if (tasks != result.end() && !result.count("SLURM_NTASKS") &&
        !StringRef(nodes->second).getAsInteger(10, count) &&
        !StringRef(tasks->second).getAsInteger(10, each) && count < (1 << 20) &&
        each < (1 << 20))
      result["SLURM_NTASKS"] = std::to_string(count * each);
  }
  return result;
}
