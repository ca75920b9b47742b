// Expressions by precedence climbing. What stands behind a `&&`, `||` or `?`
// that is not taken is read, and assigns nothing.

#include "lib/Config/Shell/Arithmetic.h"
#include "lib/Config/Shell/Syntax.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MathExtras.h"

using namespace llvm;
using namespace accel::config::shell;
using Value = std::optional<int64_t>;

namespace {
class Evaluator {
public:
  Evaluator(StringRef text, ReadName read, WriteName write)
      : rest(text), read(read), write(write) {}

  Value run() {
    Value value = comma();
    return rest.ltrim().empty() ? value : std::nullopt;
  }

private:
  bool take(StringRef op) {
    StringRef left = rest.ltrim();
    if (!left.starts_with(op))
      return false;
    rest = left.drop_front(op.size());
    return true;
  }
  Value comma();
  Value assignment();
  Value choice();
  Value binary(unsigned level);
  Value power();
  Value unary();
  Value atom();
  Value number();
  void assign(StringRef name, Value value) {
    if (value && !skips)
      write(name, *value);
  }

  StringRef rest;
  ReadName read;
  WriteName write;
  unsigned open = 0;
  unsigned skips = 0; ///< of branches that are not taken
};
} // namespace

Value Evaluator::comma() {
  if (++open > kDeepest)
    return std::nullopt;
  Value value = assignment();
  while (value && take(","))
    value = assignment();
  --open;
  return value;
}

static Value apply(StringRef op, int64_t left, int64_t right) {
  int64_t result = 0;
  bool fails = false;
  if (op == "+")
    fails = AddOverflow(left, right, result);
  else if (op == "-")
    fails = SubOverflow(left, right, result);
  else if (op == "*")
    fails = MulOverflow(left, right, result);
  else if (op == "/" || op == "%") {
    if (right == 0 || (right == -1 && left == INT64_MIN))
      return std::nullopt;
    result = op == "/" ? left / right : left % right;
  } else if (op == "<<" || op == ">>") {
    if (right < 0 || right > 62 || left < 0 ||
        (op == "<<" && left > (INT64_MAX >> right)))
      return std::nullopt;
    result = op == "<<" ? left << right : left >> right;
  } else if (op == "**") {
    if (right < 0 || right > 64)
      return std::nullopt;
    for (result = 1; right > 0 && !fails; --right)
      fails = MulOverflow(result, left, result);
  } else {
    result = op == "<"    ? left < right
             : op == ">"  ? left > right
             : op == "<=" ? left <= right
             : op == ">=" ? left >= right
             : op == "==" ? left == right
             : op == "!=" ? left != right
             : op == "&"  ? left & right
             : op == "^"  ? left ^ right
                          : left | right;
  }
  return fails ? std::nullopt : Value(result);
}

Value Evaluator::assignment() {
  StringRef begin = rest, left = rest.ltrim();
  StringRef name = left.take_while(isNameLetter);
  if (!name.empty() && !isDigit(name.front())) {
    rest = left.drop_front(name.size());
    for (StringRef op : {"=", "+=", "-=", "*=", "/=", "%="}) {
      if (rest.ltrim().starts_with("==") || !take(op))
        continue;
      if (++open > kDeepest)
        return std::nullopt;
      Value right = assignment();
      --open;
      if (op.size() > 1 && right) {
        Value before = read(name);
        right = before ? apply(op.drop_back(), *before, *right) : std::nullopt;
      }
      assign(name, right);
      return right;
    }
    rest = begin;
  }
  return choice();
}

Value Evaluator::choice() {
  Value condition = binary(0);
  if (!condition || !take("?"))
    return condition;
  if (++open > kDeepest)
    return std::nullopt;
  skips += *condition == 0;
  Value yes = assignment();
  skips -= *condition == 0;
  if (!take(":"))
    return std::nullopt;
  skips += *condition != 0;
  Value no = choice();
  skips -= *condition != 0;
  --open;
  return *condition ? yes : no;
}

Value Evaluator::binary(unsigned level) {
  static constexpr std::initializer_list<StringLiteral> kLevels[] = {
      {"||"},
      {"&&"},
      {"|"},
      {"^"},
      {"&"},
      {"==", "!="},
      {"<=", ">=", "<", ">"},
      {"<<", ">>"},
      {"+", "-"},
      {"*", "/", "%"}};
  if (level == std::size(kLevels))
    return power();
  Value left = binary(level + 1);
  while (left) {
    StringRef op, ahead = rest.ltrim();
    for (StringRef one : kLevels[level])
      if (op.empty() && ahead.starts_with(one))
        op = one;
    StringRef after = ahead.drop_front(op.size());
    // A longer operator's first letter.
    bool isLonger = op.size() == 1 && StringRef("&|<>*").contains(op[0]) &&
                    after.starts_with(op);
    bool assigns = op.size() == 1 && StringRef("+-*/%<>").contains(op[0]) &&
                   after.starts_with("=");
    if (op.empty() || isLonger || assigns)
      break;
    rest = after;
    bool isShort = (op == "&&" && *left == 0) || (op == "||" && *left != 0);
    skips += isShort;
    Value right = binary(level + 1);
    skips -= isShort;
    if (op == "&&" || op == "||")
      left = isShort ? Value(op == "||")
             : right ? Value(*right != 0)
                     : std::nullopt;
    else
      left = right ? apply(op, *left, *right) : std::nullopt;
  }
  return left;
}

Value Evaluator::unary() {
  if (++open > kDeepest)
    return std::nullopt;
  Value value;
  StringRef ahead = rest.ltrim();
  if (ahead.starts_with("++") || ahead.starts_with("--")) {
    bool adds = take("++");
    (void)take("--");
    StringRef name = rest.ltrim().take_while(isNameLetter);
    rest = rest.ltrim().drop_front(name.size());
    value = name.empty() ? std::nullopt : read(name);
    if (value)
      value = apply("+", *value, adds ? 1 : -1);
    assign(name, value);
  } else if (take("-")) {
    value = unary();
    value = value ? apply("-", 0, *value) : std::nullopt;
  } else if (take("+")) {
    value = unary();
  } else if (!ahead.starts_with("!=") && take("!")) {
    value = unary();
    value = value ? Value(*value == 0) : std::nullopt;
  } else if (take("~")) {
    value = unary();
    value = value ? Value(~*value) : std::nullopt;
  } else {
    value = atom();
  }
  --open;
  return value;
}

/// Binds less than a sign, as Bash has it: -2**2 is 4.
Value Evaluator::power() {
  Value value = unary();
  if (!value || !take("**"))
    return value;
  if (++open > kDeepest)
    return std::nullopt;
  Value right = power();
  --open;
  return right ? apply("**", *value, *right) : std::nullopt;
}

Value Evaluator::number() {
  StringRef digits = rest.take_while(isNameLetter);
  rest = rest.drop_front(digits.size());
  int64_t value;
  unsigned base = digits.starts_with_insensitive("0x") ? 16
                  : digits.starts_with("0")            ? 8
                                                       : 10;
  if (rest.starts_with("#") ||
      digits.drop_front(base == 16 ? 2 : 0).getAsInteger(base, value))
    return std::nullopt;
  return value;
}

Value Evaluator::atom() {
  rest = rest.ltrim();
  if (take("(")) {
    Value inner = comma();
    return take(")") ? inner : std::nullopt;
  }
  if (!rest.empty() && isDigit(rest.front()))
    return number();
  StringRef name = rest.take_while(isNameLetter);
  rest = rest.drop_front(name.size());
  if (name.empty())
    return std::nullopt;
  Value value = skips ? Value(1) : read(name);
  if (take("++"))
    assign(name, value ? apply("+", *value, 1) : std::nullopt);
  else if (take("--"))
    assign(name, value ? apply("+", *value, -1) : std::nullopt);
  return value;
}

Value accel::config::shell::evaluate(StringRef text, ReadName read,
                                     WriteName write) {
  return Evaluator(text, read, write).run();
}
