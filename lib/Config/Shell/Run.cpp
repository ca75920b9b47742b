// Commands one after another. Of a condition that nobody knows both branches
// are run, each from what is known before it, and what they leave otherwise is
// undecided. A branch that ends the script is not the one that launches.

#include "lib/Config/Shell/Run.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/StringExtras.h"

using namespace llvm;
using namespace accel::config;
using namespace accel::config::shell;
using Flow = Runner::Flow;

static constexpr size_t kMostSteps = 100000;
static constexpr size_t kMostExpanded = 1 << 20;
static constexpr size_t kMostCopied = 1 << 26;

Reason Runner::makeReason(unsigned line, const Twine &what, const Twine &wayOut,
                          bool isUndecided) {
  return std::make_shared<Unknown>(
      Unknown{line, what.str(), isUndecided, wayOut.str()});
}

void Runner::spend(size_t bytes) {
  expanded += bytes + 1;
  if (expanded > kMostExpanded)
    fail(1, "expected expansions that come to at most 1 MiB");
}

void Runner::spendCopy(size_t bytes) {
  copied += bytes;
  if (copied > kMostCopied)
    fail(1, "expected conditions and subshells whose copies of the variables "
            "come to at most 64 MiB");
}

State Runner::copyState() {
  spendCopy(state.size());
  return state;
}

Flow Runner::runText(StringRef text, unsigned line, bool isOneLine) {
  Expected<List> list = parse(text, name, line, isOneLine);
  if (list)
    return runList(*list);
  handleAllErrors(list.takeError(), [&](const ConfigError &error) {
    fail(error.where().line, error.text());
  });
  return Flow::Exit;
}

Flow Runner::runList(const List &list) {
  Flow flow = Flow::Next;
  for (const AndOr &one : list) {
    if (failure || flow != Flow::Next)
      break;
    flow = runAndOr(one);
  }
  return flow;
}

Flow Runner::runAndOr(const AndOr &list) {
  Flow flow = Flow::Next;
  for (size_t i = 0; i < list.pipelines.size(); ++i) {
    const Pipeline &pipeline = list.pipelines[i];
    bool isFirst = i == 0, isOr = list.isOr[i];
    if (!isFirst && status.ok && *status.ok == isOr)
      continue;
    if (isFirst || status.ok) {
      flow = runPipeline(pipeline);
    } else {
      Status before = status;
      flow = runUndecided({[&] { return runPipeline(pipeline); }},
                          /*mayBeNone=*/true, before.why);
      // Where the other branch ended the script, the condition is known.
      status = before;
    }
    if (failure || flow != Flow::Next)
      break;
  }
  return flow;
}

Flow Runner::runPipeline(const Pipeline &pipeline) {
  Flow flow = Flow::Next;
  if (pipeline.commands.size() == 1) {
    flow = runCommand(*pipeline.commands[0]);
  } else {
    for (const auto &command : pipeline.commands) {
      // Between two commands texts go that nobody knows here.
      bool isLast = &command == &pipeline.commands.back();
      Text passed;
      Text *outer = output;
      if (!isLast || outer)
        output = &passed;
      (void)runChild([&] { return runCommand(*command); }, false);
      output = outer;
      if (outer && isLast)
        outer->unknown = makeReason(command->line, "what a pipeline prints",
                                    kArgumentsAlone);
    }
    status = {std::nullopt,
              makeReason(pipeline.commands[0]->line,
                         "whether this pipeline succeeds", kArgumentsAlone)};
  }
  if (pipeline.isNegated && status.ok)
    status.ok = !*status.ok;
  return flow;
}

Flow Runner::runChild(function_ref<Flow()> body, bool isProcess) {
  State before = copyState();
  if (isProcess) {
    for (auto it = state.variables.begin(); it != state.variables.end();)
      it = it->second.isExported ? std::next(it) : state.variables.erase(it);
    state.functions.clear();
  }
  (void)body();
  // It ends itself alone; what it has written to files stays.
  before.files = std::move(state.files);
  state = std::move(before);
  return Flow::Next;
}

Flow Runner::runUndecided(ArrayRef<std::function<Flow()>> branches,
                          bool mayBeNone, Reason why) {
  if (!why)
    why = makeReason(1, "what a command answers", kArgumentsAlone);
  Unknown undecided = *why;
  undecided.isUndecided = true;
  why = std::make_shared<Unknown>(std::move(undecided));
  State before = copyState();
  std::optional<State> joined;
  if (mayBeNone)
    joined = before;
  std::optional<Flow> flow;
  if (mayBeNone)
    flow = Flow::Next;
  Reason outer = branch;
  for (const std::function<Flow()> &one : branches) {
    state = before;
    spendCopy(before.size());
    branch = outer ? outer : why;
    Flow left = one();
    branch = outer;
    if (failure)
      return Flow::Exit;
    if (left == Flow::Exit)
      continue;
    if (flow && *flow != left) {
      fail(why->line, why->what +
                          " is not known, and decides whether a loop or "
                          "a function goes on: " +
                          why->wayOut);
      return Flow::Exit;
    }
    flow = left;
    joined = joined ? State::join(*joined, state, why) : copyState();
  }
  status = {std::nullopt, why};
  state = joined ? std::move(*joined) : std::move(before);
  return flow.value_or(Flow::Exit);
}

/// `if` from one of its branches on.
Flow Runner::runIf(const Command &command, size_t number) {
  for (; number < command.branches.size(); ++number) {
    const Branch &one = command.branches[number];
    if (one.condition.empty())
      return runList(one.body);
    Flow flow = runList(one.condition);
    if (failure || flow != Flow::Next)
      return flow;
    if (!status.ok) {
      if (++depth > kDeepestRun)
        fail(command.line, "more than " + Twine(kDeepestRun) +
                               " conditions after each other are not known");
      llvm::scope_exit leave([&] { --depth; });
      std::function<Flow()> yes = [&] { return runList(one.body); };
      std::function<Flow()> no = [&] { return runIf(command, number + 1); };
      return failure ? Flow::Exit
                     : runUndecided({yes, no}, /*mayBeNone=*/false, status.why);
    }
    if (*status.ok)
      return runList(one.body);
  }
  status = {};
  return Flow::Next;
}

Flow Runner::runCase(const Command &command) {
  Text subject = expandText(command.words[0].text, command.words[0].line);
  Reason why = subject.unknown;
  std::vector<std::function<Flow()>> bodies;
  bool isCovered = false;
  auto runFrom = [&](size_t number) {
    Flow flow = runList(command.branches[number].body);
    while (!failure && flow == Flow::Next && command.branches[number].falls &&
           ++number < command.branches.size())
      flow = runList(command.branches[number].body);
    return flow;
  };
  status = {};
  for (auto [number, one] : enumerate(command.branches)) {
    std::optional<bool> fits = false;
    for (const Word &pattern : one.patterns) {
      Text covered = expandText(pattern.text, pattern.line, /*asPattern=*/true);
      std::optional<bool> has = covered.text == "*" ? std::optional<bool>(true)
                                : subject.unknown || covered.unknown
                                    ? std::nullopt
                                    : matches(covered.text, subject.text);
      spend(
          std::min(subject.text.size() * covered.text.size(), size_t(1 << 20)) /
          64);
      if (!has && !why)
        why = covered.unknown ? covered.unknown
                              : makeReason(pattern.line,
                                           "whether '" + subject.text +
                                               "' is '" + covered.text + "'",
                                           kArgumentsAlone);
      if (has && *has) {
        fits = true;
        break;
      }
      if (!has)
        fits = std::nullopt;
    }
    if (fits && !*fits)
      continue;
    if (fits && bodies.empty())
      return runFrom(number);
    bodies.push_back([&, number = number] { return runFrom(number); });
    isCovered = fits.has_value();
    if (isCovered)
      break;
  }
  if (bodies.empty())
    return Flow::Next;
  return runUndecided(bodies, !isCovered, why);
}

/// One round of a loop; `ends` where it was the last one.
Flow Runner::runBody(const List &body, bool &ends) {
  Flow flow = runList(body);
  ends = failure || flow != Flow::Next;
  if (flow == Flow::Continue && !failure)
    ends = false;
  return flow == Flow::Break || flow == Flow::Continue ? Flow::Next : flow;
}

Flow Runner::runFor(const Command &command) {
  std::vector<Text> values =
      command.isOverArguments ? state.arguments : expandWords(command.words);
  Reason why = command.isOverArguments ? state.argumentsUnknown : nullptr;
  for (const Text &value : values)
    if (value.unknown && !why)
      why = value.unknown;
  Flow flow = Flow::Next;
  if (why) {
    auto round = [&] {
      bool ends = false;
      Variable variable;
      variable.items = {Text{"$" + command.name, command.line, why}};
      setVariable(command.name, std::move(variable));
      return runBody(command.branches[0].body, ends);
    };
    return runUndecided({round}, /*mayBeNone=*/true, why);
  }
  bool ends = false;
  for (const Text &value : values) {
    Variable variable;
    variable.items = {value};
    setVariable(command.name, std::move(variable));
    flow = runBody(command.branches[0].body, ends);
    if (ends)
      break;
  }
  return flow;
}

Flow Runner::runCount(const Command &command) {
  auto value = [&](size_t part) {
    const Word &word = command.words[part];
    return compute(word.text, word.line, word.text);
  };
  auto isEmpty = [&](size_t part) {
    return StringRef(command.words[part].text).trim().empty();
  };
  Flow flow = Flow::Next;
  if (!isEmpty(0))
    (void)value(0);
  for (bool ends = false; !ends && !failure;) {
    Text goesOn = isEmpty(1) ? Text{"1", 0, {}} : value(1);
    if (goesOn.unknown) {
      auto round = [&] { return runBody(command.branches[0].body, ends); };
      return runUndecided({round}, /*mayBeNone=*/true, goesOn.unknown);
    }
    if (goesOn.text == "0")
      break;
    flow = runBody(command.branches[0].body, ends);
    if (!ends && !isEmpty(2))
      (void)value(2);
    if (++steps > kMostSteps)
      fail(command.line, "expected at most 100,000 commands, found more");
  }
  return flow;
}

Flow Runner::runWhile(const Command &command) {
  Flow flow = Flow::Next;
  const Branch &one = command.branches[0];
  for (bool ends = false; !ends && !failure;) {
    flow = runList(one.condition);
    if (failure || flow != Flow::Next)
      return flow;
    if (!status.ok) {
      auto round = [&] {
        Flow left = runBody(one.body, ends);
        if (!failure && left == Flow::Next)
          left = runList(one.condition);
        return left;
      };
      return runUndecided({round}, /*mayBeNone=*/true, status.why);
    }
    if (*status.ok == command.isNegated)
      break;
    flow = runBody(one.body, ends);
    if (++steps > kMostSteps)
      fail(command.line, "expected at most 100,000 commands, found more");
  }
  status = {};
  return flow;
}

Flow Runner::runCommand(const Command &command) {
  if (++steps > kMostSteps)
    fail(command.line, "expected at most 100,000 commands, found more");
  if (++depth > kDeepestRun)
    fail(command.line, "calls are nested deeper than " + Twine(kDeepestRun));
  llvm::scope_exit leave([&] { --depth; });
  if (failure)
    return Flow::Exit;
  using Kind = Command::Kind;
  switch (command.kind) {
  case Kind::Simple:
    return runSimple(command);
  case Kind::Group:
    return runList(command.branches[0].body);
  case Kind::Subshell:
    return runChild([&] { return runList(command.branches[0].body); }, false);
  case Kind::If:
    return runIf(command, 0);
  case Kind::For:
    return runFor(command);
  case Kind::Count:
    return runCount(command);
  case Kind::While:
    return runWhile(command);
  case Kind::Case:
    return runCase(command);
  case Kind::Function:
    state.functions[command.name] = std::make_shared<Command>(command);
    status = {};
    return Flow::Next;
  case Kind::Test:
    status = testCompound(command);
    return Flow::Next;
  case Kind::Arithmetic:
    status = testArithmetic(command);
    return Flow::Next;
  }
  llvm_unreachable("unknown kind of command");
}

Expected<Ran> accel::config::shell::run(StringRef text, StringRef name,
                                        const Given &given) {
  Runner runner(name, given);
  for (const auto &[variable, value] : variablesOfSlurm(text)) {
    Variable made;
    made.items = {Text{value, 1, {}}};
    made.isExported = true;
    runner.state.variables[variable] = std::move(made);
  }
  for (const auto &[variable, value] : given) {
    unsigned number = 0;
    if (!StringRef(variable).getAsInteger(10, number)) {
      if (number > 0 && number <= 1000 &&
          runner.state.arguments.size() < number)
        runner.state.arguments.resize(number);
      if (number > 0 && number <= 1000)
        runner.state.arguments[number - 1] = Text{value, 1, {}};
      continue;
    }
    Variable made;
    made.items = {Text{value, 1, {}}};
    made.isExported = true;
    runner.state.variables[variable] = std::move(made);
  }
  (void)runner.runText(text, 1, /*isOneLine=*/false);
  if (runner.failure)
    return failAt(Place{runner.failedIn.empty() ? name.str() : runner.failedIn,
                        runner.failure->first},
                  runner.failure->second);
  return runner.takeResult();
}
