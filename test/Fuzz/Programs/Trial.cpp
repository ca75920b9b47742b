// Children that try programs, a batch each, and the parent that listens.

#include "Trial.h"

#include "lib/Driver/InitAll.h"
#include "llvm/Support/JSON.h"

#include <chrono>
#include <cstring>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace mlir;
using namespace accel;
using namespace accel::fuzz;

/// A context keeps every attribute for ever, so children end now and then.
static constexpr uint64_t kBatch = 50;

std::unique_ptr<MLIRContext> fuzz::makeContext() {
  DialectRegistry registry;
  registerAllDialects(registry);
  auto context =
      std::make_unique<MLIRContext>(registry, MLIRContext::Threading::DISABLED);
  context->loadAllAvailableDialects();
  return context;
}

std::string Result::getKind() const {
  return verdict == stringify(outcome.verdict) ? outcome.getKind()
                                               : verdict + ": " + outcome.where;
}

static std::string toLine(const Result &result) {
  std::string line;
  llvm::raw_string_ostream stream(line);
  stream << llvm::json::Value(
      llvm::json::Object{{"program", int64_t(result.program)},
                         {"layout", result.layout},
                         {"flags", result.flags},
                         {"verdict", result.verdict},
                         {"enum", int(result.outcome.verdict)},
                         {"where", result.outcome.where},
                         {"what", llvm::json::fixUTF8(result.outcome.what)},
                         {"right", result.outcome.isRight},
                         {"reason", result.outcome.reason},
                         {"mutants", result.outcome.mutants},
                         {"seconds", result.seconds}});
  return line + "\n";
}

static Result fromLine(StringRef line) {
  Result result;
  llvm::Expected<llvm::json::Value> parsed = llvm::json::parse(line);
  const llvm::json::Object *object = parsed ? parsed->getAsObject() : nullptr;
  if (!object) {
    llvm::consumeError(parsed.takeError());
    return result;
  }
  auto text = [&](StringRef key) {
    return object->getString(key).value_or("").str();
  };
  result.program = object->getInteger("program").value_or(0);
  result.layout = object->getInteger("layout").value_or(0);
  result.flags = text("flags");
  result.verdict = text("verdict");
  result.outcome.verdict =
      static_cast<Verdict>(object->getInteger("enum").value_or(0));
  result.outcome.where = text("where");
  result.outcome.what = text("what");
  result.outcome.isRight = object->getBoolean("right").value_or(false);
  result.outcome.reason = text("reason");
  result.outcome.mutants = object->getInteger("mutants").value_or(0);
  result.seconds = object->getNumber("seconds").value_or(0);
  return result;
}

using Clock = std::chrono::steady_clock;

static double secondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

static void send(int file, StringRef text) {
  while (!text.empty()) {
    ssize_t written = write(file, text.data(), text.size());
    if (written <= 0)
      _exit(3);
    text = text.drop_front(written);
  }
}

/// Says what is being tried, then what came of it.
static void tell(int file, Result result,
                 llvm::function_ref<Outcome()> compute) {
  result.verdict = "begun";
  send(file, toLine(result));
  auto start = Clock::now();
  result.outcome = compute();
  result.seconds = secondsSince(start);
  result.verdict = stringify(result.outcome.verdict).str();
  send(file, toLine(result));
}

/// One program in some layouts.
static void tryProgram(int file, const Program &program, uint64_t number,
                       ArrayRef<Layout> layouts, const TrialOptions &options,
                       bool checksGradients) {
  Checker checker(program, options.seed + number, options.check);
  Result result;
  result.program = number;
  result.layout = -1;
  result.flags = program.update.getFlags();
  bool isReady = false;
  tell(file, result, [&] {
    Outcome outcome;
    isReady = checker.prepare(outcome);
    return outcome;
  });
  if (!isReady)
    return;
  if (checksGradients) {
    result.layout = -2;
    tell(file, result, [&] {
      Outcome outcome;
      outcome.what = checker.checkGradients();
      outcome.where = "gradients";
      if (!outcome.what.empty())
        outcome.verdict = Verdict::wrong;
      return outcome;
    });
  }
  for (auto [at, layout] : llvm::enumerate(layouts)) {
    result.layout = at;
    result.flags = (program.update.getFlags() + " " + layout.getFlags());
    tell(file, result, [&, &layout = layout] { return checker.check(layout); });
  }
}

namespace {
/// A child, and what it has said.
struct Child {
  pid_t pid = -1;
  int file = -1, said = -1;   ///< results, and what goes to stderr
  uint64_t next = 0, end = 0; ///< programs that are left of its batch
  std::string heard;
  Result begun;
  Clock::time_point since;
  bool isHung = false;
};
} // namespace

/// Says in which pass it was, and ends as it would have.
static void nameCrash(int number) {
  for (const char *text : {"\nin ", currentPass})
    if (write(STDERR_FILENO, text, strlen(text)) < 0)
      break;
  signal(number, SIG_DFL);
  raise(number);
}

/// The assertion that has failed, if one has, and the pass.
static std::string readLastWords(int file) {
  std::string text(1 << 16, 0);
  off_t size = lseek(file, 0, SEEK_END);
  off_t from = std::max<off_t>(0, size - off_t(text.size()));
  ssize_t count = pread(file, text.data(), text.size(), from);
  text.resize(std::max<ssize_t>(0, count));
  StringRef last = StringRef(text).rsplit("\nin ").second;
  size_t at = StringRef(text).find("Assertion ");
  StringRef assertion = at == StringRef::npos
                            ? StringRef()
                            : StringRef(text).substr(at).take_until(
                                  [](char c) { return c == '\n'; });
  return (last + ": " + assertion).str();
}

static Child start(llvm::function_ref<void(int)> run) {
  int ends[2];
  if (pipe(ends) != 0)
    llvm::report_fatal_error("cannot make a pipe");
  Child child;
  child.said = memfd_create("stderr", 0);
  child.pid = fork();
  if (child.pid < 0)
    llvm::report_fatal_error("cannot fork");
  if (child.pid == 0) {
    close(ends[0]);
    dup2(child.said, STDERR_FILENO);
    for (int number : {SIGSEGV, SIGABRT, SIGBUS, SIGILL, SIGFPE})
      signal(number, nameCrash);
    run(ends[1]);
    _exit(0);
  }
  close(ends[1]);
  child.file = ends[0];
  child.since = Clock::now();
  return child;
}

/// Reads what has come; false at the end.
static bool listen(Child &child,
                   llvm::function_ref<void(const Result &)> tell) {
  char bytes[65536];
  ssize_t count = read(child.file, bytes, sizeof bytes);
  if (count <= 0)
    return false;
  child.since = Clock::now();
  child.heard.append(bytes, count);
  size_t end;
  while ((end = child.heard.find('\n')) != std::string::npos) {
    Result result = fromLine(StringRef(child.heard).take_front(end));
    child.heard.erase(0, end + 1);
    child.next = result.program + 1;
    if (result.verdict == "begun") {
      child.begun = result;
    } else {
      child.begun.verdict.clear();
      tell(result);
    }
  }
  return true;
}

/// Buries a child; what it had begun has crashed, or hung.
static void finish(Child &child,
                   llvm::function_ref<void(const Result &)> tell) {
  close(child.file);
  int status = 0;
  waitpid(child.pid, &status, 0);
  bool ended = WIFEXITED(status) && WEXITSTATUS(status) == 0;
  if (!ended && child.begun.verdict == "begun") {
    child.begun.verdict = child.isHung ? "hung" : "crashed";
    child.begun.outcome.what =
        WIFSIGNALED(status) ? strsignal(WTERMSIG(status)) : "exit";
    child.begun.outcome.where = readLastWords(child.said);
    tell(child.begun);
  } else if (!ended) { // between two programs: generation itself
    Result result;
    result.program = child.next++;
    result.layout = -1;
    result.verdict = "crashed";
    result.outcome.where = "generation";
    result.outcome.what = readLastWords(child.said);
    tell(result);
  }
  close(child.said);
}

static bool isLate(Child &child, unsigned timeout) {
  if (secondsSince(child.since) < timeout)
    return false;
  if (!child.isHung)
    kill(child.pid, SIGKILL);
  child.isHung = true;
  return true;
}

void fuzz::runTrial(const TrialOptions &options,
                    llvm::function_ref<void(const Result &)> tell) {
  auto startBatch = [&](uint64_t from, uint64_t to) {
    Child child = start([&](int file) {
      auto context = makeContext();
      for (uint64_t number = from; number < to; ++number) {
        Program program = makeProgram(context.get(), options.seed, number);
        bool checks =
            options.gradientsEvery && number % options.gradientsEvery == 0;
        tryProgram(file, program, number,
                   makeLayouts(program, options.seed, number, options.layouts),
                   options, checks);
      }
    });
    child.next = from;
    child.end = to;
    return child;
  };
  uint64_t next = options.first, end = options.first + options.programs;
  std::vector<Child> children;
  while (next < end || !children.empty()) {
    while (children.size() < options.jobs && next < end) {
      uint64_t to = std::min(end, next + kBatch);
      children.push_back(startBatch(next, to));
      next = to;
    }
    std::vector<pollfd> files;
    for (const Child &child : children)
      files.push_back({child.file, POLLIN, 0});
    poll(files.data(), files.size(), 1000);
    for (size_t at = children.size(); at-- > 0;) {
      Child &child = children[at];
      if (files[at].revents && !listen(child, tell)) {
        finish(child, tell);
        uint64_t from = child.next, to = child.end;
        children.erase(children.begin() + at);
        if (from < to)
          children.push_back(startBatch(from, to));
      } else {
        isLate(child, options.timeout);
      }
    }
  }
}

Result fuzz::tryOne(const Program &program, const Layout &layout,
                    int layoutNumber, const TrialOptions &options) {
  Result last;
  auto keep = [&](const Result &result) {
    if (last.verdict.empty() || !last.isFailure())
      last = result;
  };
  Child child = start([&](int file) {
    SmallVector<Layout> layouts;
    if (layoutNumber >= 0)
      layouts.push_back(layout);
    tryProgram(file, program, 0, layouts, options, layoutNumber == -2);
  });
  for (;;) {
    pollfd file = {child.file, POLLIN, 0};
    poll(&file, 1, 1000);
    if (file.revents && !listen(child, keep))
      break;
    isLate(child, options.timeout);
  }
  finish(child, keep);
  return last;
}
