// Assignments, declarations, and what else changes variables and arguments.

#include "lib/Config/Shell/Run.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace llvm;
using namespace accel::config;
using namespace accel::config::shell;

void Runner::setVariable(const std::string &variable, Variable value) {
  if (given.count(variable))
    return; // --set-var beats the script, as make's do
  auto known = state.variables.find(variable);
  if (known != state.variables.end())
    value.isExported |= known->second.isExported;
  if (variable == "IFS")
    fail(value.items.empty() ? 1 : value.items[0].line,
         Twine("'IFS' is set, and words come apart by it: ") + kArgumentsAlone);
  state.variables[variable] = std::move(value);
}

void Runner::assign(const Assignment &one, bool exports) {
  Variable made;
  auto known = state.variables.find(one.name);
  Variable before = known == state.variables.end() ? Variable() : known->second;
  if (one.isBare) {
    before.isExported |= exports;
    if (known != state.variables.end())
      known->second.isExported |= exports;
    return;
  }
  made.isExported = exports;
  made.isArray = one.isArray || one.index || (one.adds && before.isArray);
  if (one.isArray) {
    for (const Word &item : one.items)
      if (StringRef(item.text).starts_with("[") &&
          StringRef(item.text).contains("]="))
        made.unknown = makeReason(one.line, "what '" + one.name + "' holds",
                                  kArgumentsAlone, true);
    std::vector<Text> items = expandWords(one.items);
    if (one.adds)
      made.items = before.items;
    for (Text &item : items) {
      item.line = item.line ? item.line : one.line;
      made.items.push_back(std::move(item));
    }
    if (one.adds && before.unknown)
      made.unknown = before.unknown;
    return setVariable(one.name, std::move(made));
  }
  Text value = expandText(one.value.text, one.line);
  value.line = one.line;
  int64_t number = 0;
  if (one.index) {
    Text index = compute(*one.index, one.line, *one.index);
    made.items = before.items;
    made.unknown = before.unknown;
    if (index.unknown || StringRef(index.text).getAsInteger(10, number) ||
        number < 0 || number > int64_t(made.items.size()) ||
        number >= kMostItems) {
      made.unknown = makeReason(one.line, "what '" + one.name + "' holds",
                                kArgumentsAlone, true);
      return setVariable(one.name, std::move(made));
    }
    if (number == int64_t(made.items.size()))
      made.items.emplace_back();
  } else if (one.adds && before.isArray) {
    made.items = before.items;
    made.unknown = before.unknown;
    if (made.items.empty())
      made.items.emplace_back();
  } else {
    made.items.emplace_back();
    if (one.adds && !before.items.empty())
      made.items[0] = before.items[0];
    if (one.adds)
      made.unknown = before.unknown;
  }
  Text &into = made.items[number];
  if (!one.adds) {
    into = value;
  } else {
    into.text += value.text;
    into.line = value.line;
    into.unknown = into.unknown ? into.unknown : value.unknown;
  }
  setVariable(one.name, std::move(made));
}

/// `export`, `local` and the like.
void Runner::declare(const Command &command, ArrayRef<Text> words) {
  StringRef which = words.front().text;
  bool exports = which == "export";
  for (const Text &word : words.drop_front())
    if (StringRef(word.text).starts_with("-")) {
      exports |= StringRef(word.text).contains('x');
      if (StringRef(word.text).find_first_of("nilu") != StringRef::npos &&
          which != "export")
        for (const Assignment &one : command.assignments)
          fail(command.line, "'" + which + " " + word.text + "' of '" +
                                 one.name +
                                 "' is not supported: " + kArgumentsAlone);
    }
  auto keep = [&](const std::string &variable) {
    if (which == "export" || which == "readonly" || scopes.empty())
      return;
    auto known = state.variables.find(variable);
    scopes.back()->emplace(variable,
                           known == state.variables.end()
                               ? std::nullopt
                               : std::optional<Variable>(known->second));
  };
  for (const Assignment &one : command.assignments) {
    keep(one.name);
    assign(one, exports);
  }
  for (const Text &word : words.drop_front())
    if (!word.text.empty() && all_of(word.text, isNameLetter)) {
      keep(word.text);
      auto known = state.variables.find(word.text);
      if (known != state.variables.end())
        known->second.isExported |= exports;
      else if (which != "export" && which != "readonly")
        setVariable(word.text, {{}, false, false, /*isUnset=*/true, {}});
    }
}

/// What a command puts into variables, nobody knows.
void Runner::forget(ArrayRef<Text> names, unsigned line, StringRef command) {
  for (const Text &one : names) {
    if (one.text.empty() || !all_of(one.text, isNameLetter))
      continue;
    Variable made;
    made.unknown =
        makeReason(line, "what '" + command + "' puts into '" + one.text + "'",
                   "--set-var " + Twine(one.text) + "=VALUE says it",
                   /*isUndecided=*/true);
    made.items = {Text{"$" + one.text, line, made.unknown}};
    setVariable(one.text, std::move(made));
  }
}

/// `set -- WORDS` are arguments; options are none of ours.
void Runner::runSet(ArrayRef<Text> words) {
  for (size_t i = 1; i < words.size(); ++i) {
    if (words[i].text != "--")
      continue;
    state.arguments.assign(words.begin() + i + 1, words.end());
    state.argumentsUnknown = nullptr;
    for (const Text &word : state.arguments)
      if (word.mayBeSeveral)
        state.argumentsUnknown = word.unknown;
    return;
  }
}
