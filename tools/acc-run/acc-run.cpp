// acc-run: runs an executable of acc-opt on the ranks that its mesh names.

#include "CountLines.h"
#include "Help.h"
#include "StandardOutput.h"
#include "StepTeller.h"
#include "accel-rt/NoMemory.h"
#include "accel-rt/Version.h"

#include <algorithm>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <unistd.h>

using namespace accel::rt;

namespace {

/// The socket of --serve, once it is known.
int caller = -1;

int fail(const std::string &message) {
  if (caller >= 0 && refuseCaller(caller, message))
    return 1;
  std::fprintf(stderr, "acc-run: error: %s\n", printable(message).c_str());
  return 1;
}

/// The exit status: what cannot be written is a failed run to whoever reads it.
/// `clause` ends the error.
int finishOutput(const std::string &clause) {
  Status status = flushStandardOutput();
  return status.ok() ? 0 : fail(status.message() + clause);
}

/// Parses a whole number from `low` on.
bool parseCount(const char *text, int64_t low, int64_t &value) {
  char *end = nullptr;
  errno = 0;
  long long number = std::strtoll(text, &end, 10);
  value = number;
  return errno == 0 && end != text && *end == '\0' && number >= low &&
         number <= 1000000000;
}

/// Parses a number that is not negative.
bool parseNumber(const char *text, double &value) {
  char *end = nullptr;
  value = std::strtod(text, &end);
  return end != text && *end == '\0' && std::isfinite(value) && value >= 0;
}

/// Where the value of an option that takes a text goes; null for others.
std::string *textOption(RunOptions &options, TellOptions &told,
                        const std::string &name) {
  std::pair<const char *, std::string *> rows[] = {
      {"--comm", &options.comm},
      {"--device", &options.device},
      {"--inputs", &options.inputs},
      {"--outputs", &options.outputs},
      {"--entry", &options.entry},
      {"--weights", &options.weights},
      {"--eval-inputs", &options.evalInputs},
      {"--eval-data", &options.evalData},
      {"--data", &options.data},
      {"--data-order", &options.dataOrder},
      {"--data-split", &options.dataSplit},
      {"--last-batch", &options.lastBatch},
      {"--data-type", &options.dataType},
      {"--data-labels", &options.dataLabels},
      {"--save-weights", &options.saveWeights},
      {"--save-dtype", &options.saveType},
      {"--checkpoint", &options.checkpoint},
      {"--resume", &options.resume},
      {"--original-weights", &options.originalWeights},
      {"--trace", &options.trace},
      {"--metrics", &options.metrics},
      {"--keep-best", &options.keepBest},
      {"--log", &told.log},
      {"--tensorboard", &told.tensorBoard}};
  for (auto [option, text] : rows)
    if (name == option)
      return text;
  return nullptr;
}

std::string bytesText(uint64_t bytes) {
  char text[64];
  std::snprintf(text, sizeof text, "%.1f MiB", double(bytes) / (1 << 20));
  return text;
}

void printJson(const RunResult &result) {
  std::printf(
      "{\"ranks\": %lld, \"threads\": %lld, \"planned_peak_bytes\": %llu, "
      "\"measured_peak_bytes\": %llu, \"touched_peak_bytes\": %llu, "
      "\"resident_bytes\": %llu, \"reserved_bytes\": %llu, "
      "\"load_s\": %.6f, ",
      (long long)result.ranks, (long long)result.threads,
      (unsigned long long)result.plannedPeakBytes,
      (unsigned long long)result.measuredPeakBytes,
      (unsigned long long)result.touchedPeakBytes,
      (unsigned long long)result.residentBytes,
      (unsigned long long)result.reservedBytes, result.loadSeconds);
  if (result.storageBytes)
    std::printf("\"storage_bytes\": %llu, \"storage_read_bytes\": %llu, "
                "\"storage_written_bytes\": %llu, ",
                (unsigned long long)result.storageBytes,
                (unsigned long long)result.storageRead,
                (unsigned long long)result.storageWritten);
  if (!result.machines.empty())
    std::printf("\"machines\": \"%s\", \"network_bytes\": %llu, ",
                result.machines.c_str(),
                (unsigned long long)result.networkBytes);
  if (result.evalLoss)
    std::printf("\"eval_loss\": %s, ",
                exactly(*result.evalLoss, result.evalLossType).c_str());
  if (result.bestStep)
    std::printf("\"best_step\": %lld, \"best_eval_loss\": %s, ",
                (long long)result.bestStep,
                exactly(result.bestValue, DType::F64).c_str());
  if (!result.stoppedEarly.empty())
    std::printf("\"stopped_early\": true, ");
  if (result.skippedSteps)
    std::printf("\"skipped_steps\": %lld, ", (long long)result.skippedSteps);
  std::printf("\"times_s\": [");
  for (size_t i = 0; i < result.seconds.size(); ++i)
    std::printf("%s%.6f", i ? ", " : "", result.seconds[i]);
  std::printf("]}\n");
}

void printText(const RunResult &result) {
  if (result.evalLoss)
    std::printf("eval_loss: %.6g\n", *result.evalLoss);
  if (result.bestStep)
    std::printf("best evaluation: eval_loss %.6g, after step %lld\n",
                result.bestValue, (long long)result.bestStep);
  if (result.skippedSteps)
    std::printf("skipped steps: %lld of %zu\n", (long long)result.skippedSteps,
                result.seconds.size());
  std::printf("ranks: %lld, threads of each: %lld\n", (long long)result.ranks,
              (long long)result.threads);
  std::printf("arenas: planned %s, allocated %s, touched %s\n",
              bytesText(result.plannedPeakBytes).c_str(),
              bytesText(result.measuredPeakBytes).c_str(),
              bytesText(result.touchedPeakBytes).c_str());
  std::printf("resident: %s (reserved beside the arenas: %s)\n",
              bytesText(result.residentBytes).c_str(),
              bytesText(result.reservedBytes).c_str());
  if (result.storageBytes)
    std::printf("storage: %s, read %s, written %s\n",
                bytesText(result.storageBytes).c_str(),
                bytesText(result.storageRead).c_str(),
                bytesText(result.storageWritten).c_str());
  if (!result.machines.empty())
    std::printf("machines: %s, %s of each rank for messages between them\n",
                result.machines.c_str(),
                bytesText(result.networkBytes).c_str());
  if (result.seconds.empty()) {
    std::printf("load: %.3f s; no runs\n", result.loadSeconds);
    return;
  }
  auto [fastest, slowest] =
      std::minmax_element(result.seconds.begin(), result.seconds.end());
  std::printf("load: %.3f s; %zu runs of %.6f to %.6f s\n", result.loadSeconds,
              result.seconds.size(), *fastest, *slowest);
}

/// Tells how the run went; returns the exit status.
int tell(const Status &status, const RunResult &result, bool json) {
  if (result.silentExit && status.ok())
    return *result.silentExit;
  if (!status.ok()) {
    int failed = fail(status.message());
    // As a shell reports a process that a signal ended.
    return result.interruptedBy ? 128 + result.interruptedBy : failed;
  }
  if (!result.stoppedEarly.empty())
    std::fprintf(stderr, "acc-run: %s\n", result.stoppedEarly.c_str());
  if (!result.counts.empty())
    printCounts(result, json);
  else if (json)
    printJson(result);
  else
    printText(result);
  return finishOutput(result.lastCheckpoint);
}

/// Memory that runs out is an error, too. By force, because what unwinds may
/// need memory itself (JSON's destructors do); ranks end with their parent.
void endRun() {
  constexpr char text[] =
      "acc-run: error: cannot allocate memory: the limits are the machine's "
      "memory, that of the cgroup, and 'ulimit -v'\n";
  _exit(write(STDERR_FILENO, text, sizeof text - 1) < 0 ? 2 : 1);
}

void guardMemory() { endWithoutMemory(endRun); }
ACCEL_RUN_FIRST(guardMemory)

} // namespace

int main(int argc, char **argv) {
  RunOptions options;
  TellOptions told;
  std::map<std::string, std::string> seen; // options and their values
  guardMemory();
  // A limit on the size of files, and a reader that has gone, are errors to
  // report, not the end.
  std::signal(SIGXFSZ, SIG_IGN);
  std::signal(SIGPIPE, SIG_IGN);
  for (int i = 1; i < argc; ++i) {
    std::string argument = argv[i], value;
    // --option=value and --option value are the same.
    size_t equals = argument.find('=');
    bool attached = argument.rfind("--", 0) == 0 && equals != std::string::npos;
    if (attached) {
      value = argument.substr(equals + 1);
      argument.resize(equals);
    }
    if (argument.empty() || argument[0] != '-') {
      if (!options.executable.empty())
        return fail("expected one executable, found " +
                    inQuotes(options.executable) + " and " +
                    inQuotes(argument));
      options.executable = argument;
      continue;
    }
    bool help = argument == "--help" || argument == "-h";
    bool flag = help || argument == "--version" || argument == "--json" ||
                argument == "--poison" || argument == "--new-data" ||
                argument == "--checkpoint-sync" || argument == "--averages";
    if (flag && attached)
      return fail("option " + inQuotes(argument) + " takes no value");
    if (help) {
      std::fputs(kHelp, stdout);
      return finishOutput("");
    }
    if (argument == "--version") {
      std::fputs(versionText("acc-run").c_str(), stdout);
      return finishOutput("");
    }
    if (flag) {
      (argument == "--json"              ? told.json
       : argument == "--averages"        ? options.averages
       : argument == "--new-data"        ? options.newData
       : argument == "--checkpoint-sync" ? options.checkpointSync
                                         : options.poison) = true;
      continue;
    }
    int64_t *count = argument == "-n"               ? &options.ranks
                     : argument == "--repeat"       ? &options.repeats
                     : argument == "--steps"        ? &options.steps
                     : argument == "--epochs"       ? &options.epochs
                     : argument == "--threads"      ? &options.threads
                     : argument == "--save-every"   ? &options.saveEvery
                     : argument == "--keep"         ? &options.keep
                     : argument == "--eval-every"   ? &options.evalEvery
                     : argument == "--eval-batches" ? &options.evalBatches
                     : argument == "--early-stopping-patience"
                         ? &options.earlyStoppingPatience
                     : argument == "--log-every" ? &told.every
                                                 : nullptr;
    std::string *text = textOption(options, told, argument);
    bool isThreshold = argument == "--early-stopping-threshold";
    if (!count && !text && !isThreshold && argument != "--hang-after" &&
        argument != "--seed" && argument != "--serve")
      return fail("unknown option " + inQuotes(argument) +
                  "; acc-run --help lists them");
    if (!attached) {
      if (++i == argc)
        return fail("option " + inQuotes(argument) + " expects a value");
      value = argv[i];
    }
    auto [before, isFirst] = seen.emplace(argument, value);
    if (!isFirst && before->second != value)
      return fail("expected " + inQuotes(argument) + " once, found " +
                  inQuotes(argument + "=" + before->second) + " and " +
                  inQuotes(argument + "=" + value));
    if (text) {
      if (value.empty())
        return fail("option " + inQuotes(argument) + " expects a value");
      *text = value;
      continue;
    }
    if (isThreshold) {
      if (!parseNumber(value.c_str(), options.earlyStoppingThreshold))
        return fail("option " + inQuotes(argument) +
                    " expects a number that is not negative, found " +
                    inQuotes(value));
      continue;
    }
    int64_t number, low = argument == "--seed" || argument == "--serve" ? 0 : 1;
    if (!parseCount(value.c_str(), low, number))
      return fail("option " + inQuotes(argument) +
                  " expects a whole number of at least " + std::to_string(low) +
                  ", found " + inQuotes(value));
    if (argument == "--seed")
      options.seed = number;
    else if (argument == "--serve")
      caller = options.caller = static_cast<int>(number);
    else if (count)
      *count = number;
    else
      options.hangSeconds = static_cast<double>(number);
  }
  if (options.executable.empty())
    return fail("expected an executable; acc-run --help says more");
  const char *poison = std::getenv("ACCEL_POISON");
  options.poisonIfExecuted = poison && *poison && std::strcmp(poison, "0") != 0;
  if (caller >= 0) {
    int code = 0;
    Status status = serveCaller(std::move(options), code);
    return status.ok() ? code : fail(status.message());
  }
  options.progress = [](const std::string &line) {
    // Nobody waits for a reader of what is over in two seconds.
    if (takesLine(STDERR_FILENO))
      std::fprintf(stderr, "acc-run: %s\n", printable(line).c_str());
  };
  options.warn = [](const std::string &line) {
    std::fprintf(stderr, "acc-run: warning: %s\n", printable(line).c_str());
  };
  StepTeller teller(told);
  for (auto [name, given] :
       {std::pair("--log", !told.log.empty()),
        std::pair("--tensorboard", !told.tensorBoard.empty()),
        std::pair("--log-every", told.every > 0)})
    if (given)
      options.tellsOfSteps = name;
  options.begin = [&](const RunStart &run) { return teller.begin(run); };
  options.step = [&](const StepResult &step) { return teller.add(step); };
  options.canTellStep = [] { return takesLine(STDOUT_FILENO); };

  RunResult result;
  Status status = runExecutable(options, result);
  if (Status finished = teller.finish(); status.ok())
    status = std::move(finished);
  int code = tell(status, result, told.json);
  // Last, because whoever started the processes ends all of them when one ends.
  if (result.leave)
    result.leave(code);
  return code;
}
