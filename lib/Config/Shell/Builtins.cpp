// Simple commands: what changes what is known, what starts a script of
// Python's, and the rest, which does neither.

#include "lib/Config/Shell/Run.h"
#include "lib/Config/Source.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"

using namespace llvm;
using namespace accel::config;
using namespace accel::config::shell;
using Flow = Runner::Flow;

/// The file that the command's output goes to gets `text`; else `$(…)` does.
void Runner::print(const Command &command, Text text) {
  for (const Redirection &one : command.redirections) {
    if (one.number > 1 || (one.op != ">" && one.op != ">>" && one.op != ">|"))
      continue;
    Text target = expandText(one.target.text, one.target.line);
    if (StringRef(target.text).starts_with("&"))
      continue;
    Text &file = state.files[target.text];
    if (one.op != ">>")
      file = {};
    file.text += text.text;
    file.line = text.line;
    file.unknown = file.unknown ? file.unknown : text.unknown;
    return;
  }
  if (!output)
    return;
  output->text += text.text;
  output->unknown = output->unknown ? output->unknown : text.unknown;
}

void Runner::noteLaunch(std::vector<Text> words, unsigned line) {
  auto script = find_if(words, [](const Text &word) {
    return StringRef(word.text).ends_with(".py");
  });
  static constexpr StringLiteral kOthers[] = {
      "cp",   "mv",   "cat",  "ls",  "sed",   "grep", "chmod", "rm",
      "head", "tail", "wc",   "vi",  "tar",   "scp",  "rsync", "ln",
      "git",  "diff", "find", "zip", "touch", "test", "mkdir", "pip"};
  if (captures || script == words.end() || std::next(script) == words.end() ||
      is_contained(kOthers, sys::path::filename(words.front().text)))
    return;
  words.insert(words.begin(), launchers.begin(), launchers.end());
  Launch made{std::move(words), 0, line, branch, state.files};
  made.script = find_if(made.words,
                        [](const Text &word) {
                          return StringRef(word.text).ends_with(".py");
                        }) -
                made.words.begin();
  for (const Launch &other : result.launches)
    if (other.words == made.words)
      return;
  spendCopy(state.size());
  if (result.launches.size() < 2)
    result.launches.push_back(std::move(made));
}

Flow Runner::runFunction(StringRef called, std::vector<Text> words) {
  auto known = state.functions.find(called.str());
  std::shared_ptr<const Command> body = known->second;
  if (!body) {
    fail(words[0].line, "which '" + called +
                            "' is called, a condition "
                            "decides: " +
                            Twine(kArgumentsAlone));
    return Flow::Exit;
  }
  std::vector<Text> outer = std::exchange(state.arguments, {});
  Reason outerUnknown = std::exchange(state.argumentsUnknown, nullptr);
  state.arguments.assign(words.begin() + 1, words.end());
  for (const Text &word : state.arguments)
    if (word.mayBeSeveral)
      state.argumentsUnknown = word.unknown;
  std::map<std::string, std::optional<Variable>> locals;
  scopes.push_back(&locals);
  Flow flow = runList(body->branches[0].body);
  scopes.pop_back();
  for (auto &[variable, value] : locals) {
    if (value)
      state.variables[variable] = std::move(*value);
    else
      state.variables.erase(variable);
  }
  state.arguments = std::move(outer);
  state.argumentsUnknown = outerUnknown;
  return flow == Flow::Return ? Flow::Next : flow;
}

/// What people's shells read first, which sets PATH and the like.
static bool isOfTheShell(StringRef path) {
  StringRef file = sys::path::filename(path);
  return file == "activate" || file == "conda.sh" || file.ends_with("rc") ||
         file.contains("profile") || file == "setvars.sh";
}

Flow Runner::runSource(ArrayRef<Text> words, unsigned line) {
  if (words.size() < 2)
    return Flow::Next;
  const Text &path = words[1];
  status = {};
  if (isOfTheShell(path.text))
    return Flow::Next;
  std::string text;
  auto written = state.files.find(path.text);
  bool isRead = false;
  if (!path.unknown && written != state.files.end() &&
      !written->second.unknown) {
    text = written->second.text;
    isRead = true;
  } else if (!path.unknown) {
    Expected<std::pair<std::string, std::string>> opened =
        openPath(path.text, Place{name, line});
    isRead = bool(opened);
    if (opened)
      text = std::move(opened->second);
    else
      consumeError(opened.takeError());
  }
  if (isRead) {
    std::string outer = std::exchange(name, path.text);
    Flow flow = runText(text, 1, /*isOneLine=*/false);
    if (failure && failedIn.empty())
      failedIn = name;
    name = outer;
    return flow == Flow::Return ? Flow::Next : flow;
  }
  // It may have set anything.
  Reason why =
      makeReason(line,
                 "what '" + words[0].text + " " + path.text +
                     "' sets, which cannot "
                     "be read,",
                 "put the file there, or --set-var says the variables, or " +
                     Twine(kArgumentsAlone),
                 /*isUndecided=*/true);
  state.environment = why;
  for (auto &[variable, value] : state.variables)
    if (!given.count(variable)) {
      value.unknown = why;
      value.items = {Text{"$" + variable, line, why}};
    }
  return Flow::Next;
}

/// `bash -c TEXT` and `bash FILE`, behind srun and the like too.
Flow Runner::runShell(std::vector<Text> words, size_t shell, bool &isShell) {
  isShell = false;
  size_t at = shell + 1;
  bool isText = false;
  for (; at < words.size() && StringRef(words[at].text).starts_with("-"); ++at)
    isText |= !StringRef(words[at].text).starts_with("--") &&
              StringRef(words[at].text).contains('c');
  if (at >= words.size() || words[at].unknown)
    return Flow::Next;
  std::string text = words[at].text, file = name;
  unsigned line = words[at].line;
  if (!isText) {
    auto opened = openPath(text, Place{name, line});
    if (!opened) {
      consumeError(opened.takeError());
      return Flow::Next;
    }
    file = text;
    text = std::move(opened->second);
    line = 1;
  }
  isShell = true;
  return runChild(
      [&] {
        std::vector<Text> outside = launchers;
        launchers.insert(launchers.end(), words.begin(), words.begin() + shell);
        llvm::scope_exit leave([&] { launchers = std::move(outside); });
        state.arguments.assign(words.begin() + at + 1, words.end());
        if (isText && !state.arguments.empty())
          state.arguments.erase(state.arguments.begin()); // it is $0
        state.argumentsUnknown = nullptr;
        std::string outer = std::exchange(name, file);
        Flow flow = runText(text, line, isText);
        if (failure && failedIn.empty())
          failedIn = name;
        name = outer;
        return flow;
      },
      /*isProcess=*/true);
}

/// What is `words` joined by blanks, as `echo` and `eval` take them.
static Text joinWords(ArrayRef<Text> words) {
  Text joined;
  for (const Text &word : words) {
    if (&word != words.begin())
      joined.text += ' ';
    joined.text += word.text;
    if (word.unknown && !joined.unknown)
      joined.unknown = word.unknown;
  }
  return joined;
}

/// What `expr` and `seq` print.
Text Runner::compute(StringRef command, ArrayRef<Text> words, unsigned line) {
  Text joined = joinWords(words);
  if (joined.unknown)
    return joined;
  if (command == "expr")
    return compute(joined.text, line, joined.text);
  int64_t first = 1, last = 0;
  bool isPlain = (words.size() == 1 || words.size() == 2) &&
                 !StringRef(words.back().text).getAsInteger(10, last) &&
                 (words.size() == 1 ||
                  !StringRef(words[0].text).getAsInteger(10, first)) &&
                 std::abs(first) < kMostItems && std::abs(last) < kMostItems;
  if (!isPlain)
    return {"", line, makeReason(line, "what 'seq' prints", kArgumentsAlone)};
  Text numbers{"", line, {}};
  for (int64_t i = first; i <= last; ++i)
    numbers.text += std::to_string(i) + "\n";
  spend(numbers.text.size());
  return numbers;
}

/// What `basename` and `dirname` print of a path.
Text Runner::cutPath(StringRef command, ArrayRef<Text> words, unsigned line) {
  Text path = words.empty() ? Text{} : words[0];
  StringRef text = StringRef(path.text).rtrim('/');
  if (words.empty() || text.empty() || (words.size() > 1 && words[1].unknown))
    path.unknown =
        makeReason(line, "what '" + command + "' prints", kArgumentsAlone);
  size_t slash = text.rfind('/');
  if (command == "basename") {
    text = text.substr(slash == StringRef::npos ? 0 : slash + 1);
    if (words.size() > 1 && text != words[1].text)
      text.consume_back(words[1].text);
  } else {
    text = slash == StringRef::npos ? "." : text.take_front(slash).rtrim('/');
    text = text.empty() ? "/" : text;
  }
  path.text = text.str();
  return path;
}

bool Runner::runBuiltin(const Command &command, std::vector<Text> &words,
                        Flow &flow) {
  StringRef first = words.front().text;
  unsigned line = command.line;
  ArrayRef<Text> rest = ArrayRef(words).drop_front();
  status = {};
  if (first == ":" || first == "true") {
  } else if (first == "false") {
    status.ok = false;
  } else if (first == "[" || first == "test") {
    bool isClosed =
        first == "test" || (!rest.empty() && rest.back().text == "]");
    if (!isClosed)
      fail(line, "expected ']' for this '['");
    else
      status = test(first == "[" ? rest.drop_back().vec() : rest.vec(), line);
  } else if (first == "export" || first == "local" || first == "readonly" ||
             first == "declare" || first == "typeset") {
    declare(command, words);
  } else if (first == "unset") {
    for (const Text &word : rest)
      if (!StringRef(word.text).starts_with("-"))
        setVariable(word.text, {{}, false, false, /*isUnset=*/true, {}});
  } else if (first == "set") {
    runSet(words);
  } else if (first == "shift") {
    unsigned count = 1;
    if (!rest.empty())
      (void)StringRef(rest[0].text).getAsInteger(10, count);
    status.ok = count <= state.arguments.size();
    spendCopy(state.arguments.size() * sizeof(Text));
    if (*status.ok)
      state.arguments.erase(state.arguments.begin(),
                            state.arguments.begin() + count);
  } else if (first == "exit" || first == "return" || first == "break" ||
             first == "continue") {
    unsigned count = 1;
    if (first[0] == 'b' || first[0] == 'c')
      if (!rest.empty() &&
          (StringRef(rest[0].text).getAsInteger(10, count) || count != 1))
        fail(line, "'" + first + "' out of several loops is not supported: " +
                       kArgumentsAlone);
    if (first == "exit" && !branch && !result.endedAt)
      result.endedAt = line;
    if (first == "return" && !rest.empty()) {
      status.ok = rest[0].text == "0";
      if (rest[0].unknown)
        status = {std::nullopt, rest[0].unknown};
    }
    flow = first == "exit"     ? Flow::Exit
           : first == "return" ? Flow::Return
           : first == "break"  ? Flow::Break
                               : Flow::Continue;
  } else if (first == "eval") {
    Text joined = joinWords(rest);
    bool isOpen = joined.unknown && joined.unknown->isUndecided;
    if (isOpen)
      fail(joined.unknown->line, joined.unknown->what +
                                     " is not known, and decides what 'eval' "
                                     "runs: " +
                                     joined.unknown->wayOut);
    else
      flow = runText(joined.text, line, /*isOneLine=*/true);
  } else if (first == "source" || first == ".") {
    flow = runSource(words, line);
  } else if (first == "read" || first == "mapfile" || first == "readarray" ||
             first == "getopts") {
    forget(rest, line, first);
    status = {std::nullopt,
              makeReason(line, "what '" + first + "' reads", kArgumentsAlone)};
  } else if (first == "expr" || first == "seq") {
    print(command, compute(first, rest, line));
  } else if (first == "basename" || first == "dirname") {
    print(command, cutPath(first, rest, line));
  } else if (first == "let") {
    for (const Text &word : rest)
      (void)compute(word.text, line, word.text);
  } else if (first == "echo" || first == "printf") {
    if (first == "printf" && rest.size() > 1 && rest[0].text == "-v") {
      forget(rest.slice(1, 1), line, "printf");
      return true;
    }
    bool isPlain = first == "echo" || rest.size() == 1;
    bool endsLine = first == "echo";
    if (first == "echo" && !rest.empty() && rest[0].text == "-n") {
      rest = rest.drop_front();
      endsLine = false;
    } else if (!rest.empty() && StringRef(rest[0].text).starts_with("-")) {
      isPlain = false;
    }
    Text text = joinWords(rest);
    text.line = line;
    if (first == "printf" &&
        StringRef(text.text).find_first_of("%\\") != StringRef::npos)
      isPlain = false;
    if (!isPlain && !text.unknown)
      text.unknown =
          makeReason(line, "what '" + first + "' prints", kArgumentsAlone);
    spend(text.text.size());
    if (endsLine)
      text.text += '\n';
    print(command, std::move(text));
  } else {
    return false;
  }
  return true;
}

/// What a command that is not run here may leave: what it writes, nobody knows,
/// save `cat` of lines that stand in the script.
void Runner::redirect(const Command &command) {
  Text text{
      "", command.line,
      makeReason(command.line, "what this command prints", kArgumentsAlone)};
  if (!command.words.empty() && command.words.front().text == "cat" &&
      command.words.size() <= 2) {
    for (const Redirection &one : command.redirections)
      if (one.here)
        text = expandHere(*one.here, one.target.line);
    if (command.words.size() == 2) {
      Text file = expandText(command.words[1].text, command.line);
      auto known = state.files.find(file.text);
      if (known != state.files.end())
        text = known->second;
    }
  }
  if (!command.words.empty() && command.words.front().text == "tee" &&
      command.words.size() == 2)
    for (const Redirection &one : command.redirections)
      if (one.here)
        state.files[expandText(command.words[1].text, command.line).text] =
            expandHere(*one.here, one.target.line);
  print(command, std::move(text));
}

Flow Runner::runWords(const Command &command, std::vector<Text> words) {
  Flow flow = Flow::Next;
  // What only says how the rest is run.
  bool isLast = false;
  while (words.size() > 1 &&
         is_contained({"exec", "command", "time", "nohup", "builtin", "env"},
                      StringRef(words.front().text))) {
    isLast |= words.front().text == "exec";
    words.erase(words.begin());
    while (words.size() > 1 && StringRef(words.front().text).contains('=') &&
           !StringRef(words.front().text).starts_with("-"))
      words.erase(words.begin());
  }
  StringRef first = words.front().text;
  if (words.front().unknown && words.front().unknown->isUndecided) {
    fail(words.front().unknown->line,
         words.front().unknown->what +
             " is not known, and decides which command is run: " +
             words.front().unknown->wayOut);
    return Flow::Exit;
  }
  if (state.functions.count(first.str()))
    return runFunction(first, std::move(words));
  if (runBuiltin(command, words, flow))
    return flow;
  status = {std::nullopt,
            makeReason(command.line, "whether '" + first + "' succeeds",
                       kArgumentsAlone)};
  Status after = status;
  bool isShell = false;
  for (size_t i = 0; i < words.size() && !isShell; ++i)
    if (is_contained({"bash", "sh", "zsh"}, sys::path::filename(words[i].text)))
      flow = runShell(words, i, isShell);
  if (!isShell)
    noteLaunch(std::move(words), command.line);
  status = after;
  redirect(command);
  return isLast ? Flow::Exit : flow;
}

Flow Runner::runSimple(const Command &command) {
  std::vector<Text> words = expandWords(command.words);
  if (failure)
    return Flow::Exit;
  bool declares = !words.empty() && is_contained({"export", "local", "readonly",
                                                  "declare", "typeset"},
                                                 StringRef(words.front().text));
  if (declares)
    return runWords(command, std::move(words));
  // Those of a command end with it.
  std::map<std::string, std::optional<Variable>> before;
  if (words.empty())
    status = {};
  for (const Assignment &one : command.assignments) {
    auto known = state.variables.find(one.name);
    if (!words.empty())
      before.emplace(one.name, known == state.variables.end()
                                   ? std::nullopt
                                   : std::optional<Variable>(known->second));
    assign(one, /*exports=*/!words.empty());
    // An assignment answers what its `$(…)` does.
    auto made = state.variables.find(one.name);
    if (words.empty() && made != state.variables.end() &&
        (StringRef(one.value.text).contains("$(") ||
         StringRef(one.value.text).contains('`')) &&
        !made->second.items.empty() && made->second.items[0].unknown)
      status = {std::nullopt, made->second.items[0].unknown};
  }
  if (words.empty()) {
    if (command.words.empty() && !command.redirections.empty())
      print(command, {});
    return Flow::Next;
  }
  Flow flow = runWords(command, std::move(words));
  for (auto &[variable, value] : before) {
    if (value)
      state.variables[variable] = std::move(*value);
    else
      state.variables.erase(variable);
  }
  return flow;
}
