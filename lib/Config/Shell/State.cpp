// Two ways that a script may have gone, joined; patterns.

#include "lib/Config/Shell/State.h"

using namespace llvm;
using namespace accel::config::shell;

bool accel::config::shell::areSame(const Reason &left, const Reason &right) {
  if (!left || !right)
    return left == right;
  return left == right || (left->what == right->what && !left->isUndecided &&
                           !right->isUndecided);
}

size_t State::size() const {
  size_t bytes = 64;
  for (const auto &[name, variable] : variables) {
    bytes += name.size() + 64;
    for (const Text &item : variable.items)
      bytes += item.text.size() + 64;
  }
  for (const auto &[name, file] : files)
    bytes += file.text.size() + 64;
  return bytes + functions.size() * 64 + arguments.size() * 64;
}

State State::join(const State &left, const State &right, const Reason &why) {
  State result = left;
  auto differ = [&](const std::string &name) {
    Variable &variable = result.variables[name];
    variable.unknown = why;
    variable.items = {Text{"$" + name, why->line, why}};
    variable.isArray = variable.isUnset = false;
  };
  for (const auto &[name, variable] : right.variables) {
    auto other = left.variables.find(name);
    if (other == left.variables.end() || !(other->second == variable))
      differ(name);
  }
  for (const auto &[name, variable] : left.variables)
    if (!right.variables.count(name))
      differ(name);
  for (const auto &[name, body] : right.functions) {
    auto &known = result.functions[name];
    if (known != body && left.functions.count(name))
      known = nullptr;
    else
      known = body;
  }
  for (const auto &[name, file] : right.files)
    if (auto known = left.files.find(name);
        known == left.files.end() || !(known->second == file))
      result.files[name].unknown = why;
  for (const auto &[name, file] : left.files)
    if (!right.files.count(name))
      result.files[name].unknown = why;
  if (left.arguments != right.arguments)
    result.argumentsUnknown = why;
  if (!result.argumentsUnknown)
    result.argumentsUnknown = right.argumentsUnknown;
  if (!result.environment)
    result.environment = right.environment;
  return result;
}

/// Of a `[…]` at the begin of `pattern`: how long it is and whether it has `c`;
/// length 0 where it is none.
static std::pair<size_t, bool> matchSet(StringRef pattern, char c) {
  bool isNegated =
      pattern.size() > 1 && (pattern[1] == '!' || pattern[1] == '^');
  bool has = false;
  size_t begin = 1 + isNegated;
  for (size_t i = begin; i < pattern.size(); ++i) {
    if (pattern[i] == ']' && i > begin)
      return {i + 1, has != isNegated};
    if (i + 2 < pattern.size() && pattern[i + 1] == '-' &&
        pattern[i + 2] != ']') {
      has |= pattern[i] <= c && c <= pattern[i + 2];
      i += 2;
    } else {
      has |= pattern[i] == c;
    }
  }
  return {0, false};
}

std::optional<bool> accel::config::shell::matches(StringRef pattern,
                                                  StringRef text) {
  if (pattern.contains("[:") || pattern.contains("@(") ||
      pattern.contains("!(") || pattern.contains("+(") ||
      pattern.contains("?(") || pattern.contains("*("))
    return std::nullopt;
  size_t star = StringRef::npos, starText = 0, p = 0, t = 0;
  while (t < text.size()) {
    size_t length = 1;
    bool fits = false;
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      starText = t;
      continue;
    }
    if (p < pattern.size()) {
      fits = pattern[p] == '?' || pattern[p] == text[t];
      if (pattern[p] == '\\' && p + 1 < pattern.size()) {
        length = 2;
        fits = pattern[p + 1] == text[t];
      } else if (pattern[p] == '[') {
        if (auto [set, has] = matchSet(pattern.substr(p), text[t]); set > 0) {
          length = set;
          fits = has;
        }
      }
    }
    if (fits) {
      p += length;
      ++t;
    } else if (star != StringRef::npos) {
      p = star + 1;
      t = ++starText;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*')
    ++p;
  return p == pattern.size();
}
