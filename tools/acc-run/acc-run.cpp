// acc-run: runs an executable of acc-opt on the ranks that its mesh names.

#include "CountLines.h"
#include "StandardOutput.h"
#include "StepLines.h"
#include "accel-rt/NoMemory.h"

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <unistd.h>

using namespace accel::rt;

namespace {

constexpr const char *kHelp =
    R"(usage: acc-run MODEL.accx [options]

Runs an executable made by acc-opt. Its ranks are processes on this machine; how
many there are, the mesh in the file says. The file contains code that is run:
take it only from where you would take a program.

  -n N            number of ranks; an error if it is not the mesh's
  --comm C        host (default): this process starts all ranks, on this machine.
                  mpi: mpirun or srun starts a process for each rank, on as many
                  machines as it reaches (docs/Machines.md)
  --device NAME   cpu or null (default: what the file was compiled for). null
                  runs any file: every rank goes through all of its commands,
                  waits and meetings, and executes, reads and writes nothing. It
                  prints how many commands of each kind a call of an entry is,
                  the bytes of their views and their arithmetic, as acc-opt
                  --report=commands predicts them (docs/Reports.md). There are
                  no losses; weights need not be there; options that read, save
                  or compute something are errors
  --inputs DIR    folder of inputs: NAME.npy ('/' in a name written %2F) or
                  input_K.pb as in ONNX test sets (default: .)
  --outputs DIR   folder that gets NAME.npy for every output, whole or not at all
  --entry NAME    what is called: step (training; the default if the file has
                  it), eval (its loss on --inputs or over all rows of --data,
                  without dropout) or forward (the model's outputs)
  --weights PATH  begin with these parameters and buffers instead of those that
                  the model was exported with: F.safetensors (--save-weights'
                  or the model's own), a checkpoint, or a folder of checkpoints,
                  whose newest is taken
  --repeat K      call eval or forward K times (default: 1)
  --steps N       train for N steps (default: 1); inputs are the global batch,
                  the same in each step; outputs are those of the last one
  --data INPUT=FILE,INPUT=FILE
                  samples to train on instead: .npy, of the input's shape with
                  any number of samples in the place of its batch, and of its
                  type, another width of whole numbers, or a narrower one of
                  floating point. Inputs without a file are read from --inputs,
                  which must have no file of the others
  --data FILE     one file of tokens: .npy, [samples, length] or one stream, or
                  raw integers. Inputs of integers [batch, length] get tokens,
                  those called *label* or *target* the same tokens, those called
                  *mask* ones
  --data-order O  shuffled (default): every epoch has an order of its own, which
                  ranks and micro-batches do not change; file: as samples lie in
                  the data. Where an epoch ends in the middle of a batch, the
                  next one begins there
  --data-type T   of a raw file: uint16 (default), int32, uint32 or int64
  --data-labels L same (default): the model shifts its labels itself; next: a
                  label is the token after its own, -100 for the last
  --eval-every K  after every step whose number K divides, call eval on what the
                  two options below name, and print its eval_loss
  --eval-inputs DIR
                  folder of its inputs, as --inputs
  --eval-data DATA
                  its samples, as --data, in the order of the file: eval_loss is
                  that of all rows at once, also of those that make no whole
                  batch; labels that are ignored do not count. Where the loss
                  does not tell rows apart, a line on stderr says how many are
                  left out
  --seed S        of the order of the data (default: the one compiled in)
  --save-weights F.safetensors
                  after the last step, parameters and buffers under their own
                  names and all aliases, whole or not at all
  --checkpoint DIR
                  save all that training needs to go on into DIR/step-NNNNNNNN
                  after the last step (docs/Checkpoints.md): each is there whole
                  or not at all, none is written over, and none is removed
                  without --keep
                  After Ctrl-C, SIGTERM or SIGHUP, or where steps cannot be
                  written to stdout any more, the step at hand is finished and
                  saved; a second signal, half a second later or after that,
                  ends the run at once. Signals that are ignored when acc-run
                  starts (nohup, &) stay ignored
  --save-every K  and after every step whose number K divides
  --keep N        only the newest N checkpoints of DIR: the oldest is removed
                  once another is there whole
  --resume DIR    go on from a checkpoint, or from the newest in DIR, whatever
                  layout saved it; --steps N counts the steps before it, too.
                  The data go on where they were
  --new-data      with --resume: --data begin at their first sample instead, and
                  may be others than the checkpoint's
  --original-weights F.safetensors
                  where --save-weights finds parameters that the exporter folded
                  away; nothing else is read from it
  --trace FILE    write what each stream of each rank did when, as JSON for
                  Perfetto (ui.perfetto.dev) and chrome://tracing, after the run
                  and however it ends: the first million commands and waits of
                  each rank, in whole calls (docs/Reports.md)
  --threads T     threads of each rank (default: cores / ranks, at least 1)
  --poison        overwrite bytes whose live range has ended (also ACCEL_POISON=1,
                  of which device null takes no notice: it has none)
  --hang-after S  give up after S seconds without progress (default: 60)
  --json          every line on stdout is one JSON object: one for each training
                  step, then one for the run
  --version       the version of the file format
  -h, --help      this text

Without --json a line of text comes once a second, and for the first and the last
step; its times are the mean since the line before. Exit status: 0, 1 after an
error (a reader of stdout that has gone is one), 129 after SIGHUP, 130 after
SIGINT and 143 after SIGTERM.
)";

int fail(const std::string &message) {
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

/// Where the value of an option that takes a text goes; null for others.
std::string *textOption(RunOptions &options, const std::string &name) {
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
      {"--data-type", &options.dataType},
      {"--data-labels", &options.dataLabels},
      {"--save-weights", &options.saveWeights},
      {"--checkpoint", &options.checkpoint},
      {"--resume", &options.resume},
      {"--original-weights", &options.originalWeights},
      {"--trace", &options.trace}};
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
  if (!result.machines.empty())
    std::printf("\"machines\": \"%s\", \"network_bytes\": %llu, ",
                result.machines.c_str(),
                (unsigned long long)result.networkBytes);
  if (result.evalLoss)
    std::printf("\"eval_loss\": %s, ",
                exactly(*result.evalLoss, result.evalLossType).c_str());
  std::printf("\"times_s\": [");
  for (size_t i = 0; i < result.seconds.size(); ++i)
    std::printf("%s%.6f", i ? ", " : "", result.seconds[i]);
  std::printf("]}\n");
}

void printText(const RunResult &result) {
  if (result.evalLoss)
    std::printf("eval_loss: %.6g\n", *result.evalLoss);
  std::printf("ranks: %lld, threads of each: %lld\n", (long long)result.ranks,
              (long long)result.threads);
  std::printf("arenas: planned %s, allocated %s, touched %s\n",
              bytesText(result.plannedPeakBytes).c_str(),
              bytesText(result.measuredPeakBytes).c_str(),
              bytesText(result.touchedPeakBytes).c_str());
  std::printf("resident: %s (reserved beside the arenas: %s)\n",
              bytesText(result.residentBytes).c_str(),
              bytesText(result.reservedBytes).c_str());
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
  bool json = false;
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
                argument == "--poison" || argument == "--new-data";
    if (flag && attached)
      return fail("option " + inQuotes(argument) + " takes no value");
    if (help) {
      std::fputs(kHelp, stdout);
      return finishOutput("");
    }
    if (argument == "--version") {
      std::printf("acc-run, executable format %lld\n",
                  (long long)kFormatVersion);
      return finishOutput("");
    }
    if (flag) {
      (argument == "--json"       ? json
       : argument == "--new-data" ? options.newData
                                  : options.poison) = true;
      continue;
    }
    int64_t *count = argument == "-n"             ? &options.ranks
                     : argument == "--repeat"     ? &options.repeats
                     : argument == "--steps"      ? &options.steps
                     : argument == "--threads"    ? &options.threads
                     : argument == "--save-every" ? &options.saveEvery
                     : argument == "--keep"       ? &options.keep
                     : argument == "--eval-every" ? &options.evalEvery
                                                  : nullptr;
    std::string *text = textOption(options, argument);
    if (!count && !text && argument != "--hang-after" && argument != "--seed")
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
    int64_t number, low = argument == "--seed" ? 0 : 1;
    if (!parseCount(value.c_str(), low, number))
      return fail("option " + inQuotes(argument) +
                  " expects a whole number of at least " + std::to_string(low) +
                  ", found " + inQuotes(value));
    if (argument == "--seed")
      options.seed = number;
    else if (count)
      *count = number;
    else
      options.hangSeconds = static_cast<double>(number);
  }
  if (options.executable.empty())
    return fail("expected an executable; acc-run --help says more");
  const char *poison = std::getenv("ACCEL_POISON");
  options.poisonIfExecuted = poison && *poison && std::strcmp(poison, "0") != 0;
  options.progress = [](const std::string &line) {
    // Nobody waits for a reader of what is over in two seconds.
    if (takesLine(STDERR_FILENO))
      std::fprintf(stderr, "acc-run: %s\n", printable(line).c_str());
  };
  options.warn = [](const std::string &line) {
    std::fprintf(stderr, "acc-run: warning: %s\n", printable(line).c_str());
  };
  StepLines lines(json);
  options.step = [&](const StepResult &step) { return lines.add(step); };
  options.canTellStep = [] { return takesLine(STDOUT_FILENO); };

  RunResult result;
  Status status = runExecutable(options, result);
  lines.finish();
  int code = tell(status, result, json);
  // Last, because whoever started the processes ends all of them when one ends.
  if (result.leave)
    result.leave(code);
  return code;
}
