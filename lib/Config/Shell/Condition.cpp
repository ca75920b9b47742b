// `[ … ]`, `[[ … ]]` and `(( … ))`: true, false, or why nobody knows.

#include "lib/Config/Shell/Run.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace llvm;
using namespace accel::config;
using namespace accel::config::shell;

namespace accel::config::shell {
/// An expression by recursive descent: `||` and -o, `&&` and -a, `!`, brackets,
/// an operator between two words or before one.
class Condition {
public:
  using Status = Runner::Status;
  /// `expand` makes the text of the word of a number, as a pattern if it is to.
  Condition(Runner &runner, ArrayRef<std::string> words, unsigned line,
            bool isCompound, function_ref<Text(size_t, bool)> expand)
      : runner(runner), words(words), line(line), isCompound(isCompound),
        expand(expand) {}

  Status run() {
    if (words.empty())
      return {false, nullptr};
    Status status = either();
    return at == words.size() ? status : unknown("what this condition says");
  }

private:
  StringRef peek(size_t ahead = 0) const {
    return at + ahead < words.size() ? StringRef(words[at + ahead]) : "";
  }
  bool take(StringRef word) {
    bool has = at < words.size() && peek() == word;
    at += has;
    return has;
  }
  Status unknown(const Twine &what) {
    return {std::nullopt, runner.makeReason(line, what, kArgumentsAlone)};
  }
  static Status ofText(const Text &text, bool ok) {
    return text.unknown ? Status{std::nullopt, text.unknown}
                        : Status{ok, nullptr};
  }
  Status either();
  Status both();
  Status one();
  Status unary(char op);
  Status compare(StringRef op);
  Status compareNumbers(StringRef op, const Text &left, const Text &right);

  Runner &runner;
  ArrayRef<std::string> words;
  unsigned line;
  bool isCompound;
  function_ref<Text(size_t, bool)> expand;
  size_t at = 0;
  unsigned depth = 0;
};
} // namespace accel::config::shell

Runner::Status Condition::either() {
  Status left = both();
  while (take(isCompound ? "||" : "-o")) {
    Status right = both();
    if (right.ok.value_or(false))
      left = right;
    else if (left.ok && !*left.ok)
      left = right;
  }
  return left;
}

Runner::Status Condition::both() {
  Status left = one();
  while (take(isCompound ? "&&" : "-a")) {
    Status right = one();
    if (right.ok && !*right.ok)
      left = right;
    else if (left.ok && *left.ok)
      left = right;
  }
  return left;
}

Runner::Status Condition::compareNumbers(StringRef op, const Text &left,
                                         const Text &right) {
  int64_t a = 0, b = 0;
  for (const Text *text : {&left, &right})
    if (text->unknown)
      return {std::nullopt, text->unknown};
  if (StringRef(left.text).trim().getAsInteger(10, a) ||
      StringRef(right.text).trim().getAsInteger(10, b))
    return unknown("whether '" + StringRef(left.text).take_front(40) + "' " +
                   op + " '" + StringRef(right.text).take_front(40) + "'");
  return {op == "-eq"   ? a == b
          : op == "-ne" ? a != b
          : op == "-lt" ? a < b
          : op == "-le" ? a <= b
          : op == "-gt" ? a > b
                        : a >= b,
          nullptr};
}

Runner::Status Condition::compare(StringRef op) {
  size_t left = at, right = at + 2;
  at += 3;
  Text a = expand(left, false);
  if (is_contained({"-eq", "-ne", "-lt", "-le", "-gt", "-ge"}, op))
    return compareNumbers(op, a, expand(right, false));
  Text b = expand(right, isCompound && op != "<" && op != ">");
  for (const Text *text : {&a, &b})
    if (text->unknown)
      return {std::nullopt, text->unknown};
  if (op == "<" || op == ">")
    return {op == "<" ? a.text < b.text : a.text > b.text, nullptr};
  std::optional<bool> same = a.text == b.text;
  if (isCompound)
    same = a.text.size() * b.text.size() > (1 << 24) ? std::nullopt
                                                     : matches(b.text, a.text);
  if (!same)
    return unknown("whether '" + StringRef(a.text).take_front(40) + "' is '" +
                   StringRef(b.text).take_front(40) + "'");
  return {*same == (op != "!="), nullptr};
}

Runner::Status Condition::unary(char op) {
  ++at;
  Text text = expand(at++, false);
  if (op == 'n')
    return ofText(text, !text.text.empty());
  if (op == 'z')
    return ofText(text, text.text.empty());
  if (op == 'v' && !text.unknown) {
    auto known = runner.state.variables.find(text.text);
    if (known != runner.state.variables.end())
      return {!known->second.isUnset, known->second.unknown};
    return unknown("whether '" + text.text + "' is set");
  }
  if (StringRef("fes").contains(op) && !text.unknown)
    if (auto file = runner.state.files.find(text.text);
        file != runner.state.files.end() && !file->second.unknown)
      return {true, nullptr};
  return unknown("whether '" + StringRef(text.text).take_front(80) +
                 "' is there");
}

Runner::Status Condition::one() {
  if (++depth > kDeepest) {
    runner.fail(line, "a condition is nested deeper than " + Twine(kDeepest));
    return {};
  }
  Status status;
  StringRef op = peek(1);
  bool isBinary =
      at + 2 < words.size() && is_contained({"=", "==", "!=", "<", ">", "-eq",
                                             "-ne", "-lt", "-le", "-gt", "-ge"},
                                            op);
  if (isBinary) {
    status = compare(op);
  } else if (at + 1 < words.size() && take("!")) {
    status = one();
    if (status.ok)
      status.ok = !*status.ok;
  } else if (at + 1 < words.size() && take("(")) {
    status = either();
    if (!take(")"))
      status = unknown("what this condition says");
  } else if (at + 1 < words.size() && peek().size() == 2 && peek()[0] == '-' &&
             isAlpha(peek()[1])) {
    status = unary(peek()[1]);
  } else if (at + 2 < words.size() && op.size() > 1 &&
             (op == "=~" || op.front() == '-') && op != "-a" && op != "-o") {
    status = unknown("whether '" + peek() + "' " + op + " '" + peek(2) + "'");
    at += 3;
  } else {
    Text text = expand(at++, false);
    status = ofText(text, !text.text.empty());
  }
  --depth;
  return status;
}

/// Requires the words between the brackets.
Runner::Status Runner::test(std::vector<Text> words, unsigned line) {
  std::vector<std::string> texts;
  for (const Text &word : words) {
    if (word.unknown && word.mayBeSeveral)
      return {std::nullopt, word.unknown};
    texts.push_back(word.text);
  }
  auto expand = [&](size_t i, bool) {
    return i < words.size() ? words[i] : Text{};
  };
  return Condition(*this, texts, line, /*isCompound=*/false, expand).run();
}

Runner::Status Runner::testCompound(const Command &command) {
  std::vector<std::string> texts;
  for (const Word &word : command.words)
    texts.push_back(word.text);
  auto expand = [&](size_t i, bool asPattern) {
    return i < texts.size()
               ? expandText(texts[i], command.words[i].line, asPattern)
               : Text{};
  };
  return Condition(*this, texts, command.line, /*isCompound=*/true, expand)
      .run();
}

Runner::Status Runner::testArithmetic(const Command &command) {
  Text value =
      compute(command.words[0].text, command.line, command.words[0].text);
  if (value.unknown)
    return {std::nullopt, value.unknown};
  return {value.text != "0", nullptr};
}
