// YAML 1.1 as PyYAML resolves it (its resolver.py's expressions, by hand), and
// JSON.

#include "Scalar.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/Regex.h"

#include <cmath>
#include <cstdio>

using namespace llvm;
using namespace accel::config;

static std::optional<bool> yamlBool(StringRef text) {
  return StringSwitch<std::optional<bool>>(text)
      .Cases({"yes", "Yes", "YES"}, true)
      .Cases({"true", "True", "TRUE"}, true)
      .Cases({"on", "On", "ON"}, true)
      .Cases({"no", "No", "NO"}, false)
      .Cases({"false", "False", "FALSE"}, false)
      .Cases({"off", "Off", "OFF"}, false)
      .Default(std::nullopt);
}

static std::string withoutUnderscores(StringRef text) {
  std::string result = text.str();
  llvm::erase(result, '_');
  return result;
}

/// Decimal, 0x, 0b, and the octal that a leading zero makes of a number.
static std::optional<int64_t> yamlInt(StringRef text) {
  static const Regex kForm("^[-+]?(0b[01_]+|0[0-7_]+|0|[1-9][0-9_]*|"
                           "0x[0-9a-fA-F_]+)$");
  if (!kForm.match(text))
    return std::nullopt;
  std::string digits = withoutUnderscores(text);
  StringRef rest = digits;
  bool negative = rest.consume_front("-");
  rest.consume_front("+");
  unsigned radix = 10;
  if (rest.consume_front("0b"))
    radix = 2;
  else if (rest.consume_front("0x"))
    radix = 16;
  else if (rest.size() > 1 && rest.starts_with("0"))
    radix = 8;
  int64_t value;
  if (rest.getAsInteger(radix, value))
    return std::nullopt;
  return negative ? -value : value;
}

static std::optional<double> toDouble(StringRef text) {
  double value;
  if (text.getAsDouble(value))
    return std::nullopt;
  return value;
}

static std::optional<double> yamlFloat(StringRef text) {
  static const Regex kForm("^([-+]?[0-9][0-9_]*\\.[0-9_]*([eE][-+][0-9]+)?|"
                           "\\.[0-9][0-9_]*([eE][-+][0-9]+)?)$");
  static const Regex kSpecial("^([-+]?\\.(inf|Inf|INF)|\\.(nan|NaN|NAN))$");
  if (kForm.match(text))
    return toDouble(withoutUnderscores(text));
  if (kSpecial.match(text))
    return text.lower() == ".nan"  ? std::nan("")
           : text.starts_with("-") ? -HUGE_VAL
                                   : HUGE_VAL;
  return std::nullopt;
}

/// 1:30 is ninety.
static std::optional<int64_t> yamlBase60(StringRef text) {
  static const Regex kForm("^[-+]?[1-9][0-9_]*(:[0-5]?[0-9])+$");
  if (!kForm.match(text))
    return std::nullopt;
  bool negative = text.consume_front("-");
  text.consume_front("+");
  int64_t value = 0;
  for (StringRef part : split(text, ':')) {
    int64_t digits;
    if (StringRef(withoutUnderscores(part)).getAsInteger(10, digits) ||
        value > (1 << 30))
      return std::nullopt;
    value = value * 60 + digits;
  }
  return negative ? -value : value;
}

static Scalar resolveYaml(StringRef text) {
  using Type = Scalar::Type;
  if (text.empty() || text == "~" || text == "null" || text == "Null" ||
      text == "NULL")
    return {Type::Null};
  if (std::optional<bool> flag = yamlBool(text))
    return {Type::Bool, *flag};
  if (std::optional<int64_t> integer = yamlInt(text))
    return {Type::Int, false, *integer, static_cast<double>(*integer)};
  if (std::optional<int64_t> integer = yamlBase60(text))
    return {Type::Int, false, *integer, static_cast<double>(*integer)};
  if (std::optional<double> number = yamlFloat(text))
    return {Type::Float, false, 0, *number};
  return {Type::String};
}

static Scalar resolveJson(StringRef text) {
  using Type = Scalar::Type;
  if (text == "null")
    return {Type::Null};
  if (text == "true" || text == "false")
    return {Type::Bool, text == "true"};
  int64_t integer;
  if (!text.getAsInteger(10, integer))
    return {Type::Int, false, integer, static_cast<double>(integer)};
  if (std::optional<double> number = toDouble(text)) {
    // DeepSpeed's reader makes an integer of 5e8 and of 8.0.
    if (*number == std::floor(*number) && std::fabs(*number) < 1e10)
      return {Type::Int, false, static_cast<int64_t>(*number), *number};
    return {Type::Float, false, 0, *number};
  }
  return {Type::String};
}

Scalar accel::config::resolveScalar(const Node &node, Syntax syntax) {
  if (node.quoted)
    return {Scalar::Type::String};
  if (syntax == Syntax::Arguments && node.text.empty())
    return {Scalar::Type::Null};
  return syntax == Syntax::Yaml ? resolveYaml(node.text)
                                : resolveJson(node.text);
}

std::string accel::config::describeValue(const Node &node, Syntax syntax) {
  if (node.kind == Node::Kind::Sequence)
    return "a list";
  if (node.kind == Node::Kind::Mapping)
    return "a mapping";
  Scalar scalar = resolveScalar(node, syntax);
  switch (scalar.type) {
  case Scalar::Type::Null:
    return syntax == Syntax::Arguments ? "none" : "null";
  case Scalar::Type::Bool:
    return scalar.flag ? "the bool true" : "the bool false";
  case Scalar::Type::Int:
  case Scalar::Type::Float:
    return "the number " + node.text;
  case Scalar::Type::String:
    break;
  }
  return "the string '" + StringRef(node.text).take_front(80).str() + "'" +
         (node.unknown.empty() ? "" : ": " + node.unknown);
}

bool accel::config::looksLikeNumber(StringRef text) {
  static const Regex kForm("^[-+]?([0-9]+\\.?[0-9]*|\\.[0-9]+)"
                           "([eE][-+]?[0-9]+)?$");
  return kForm.match(text);
}

std::string accel::config::formatNumber(double value) {
  if (value == std::floor(value) && std::fabs(value) < 1e15)
    return std::to_string(static_cast<int64_t>(value));
  for (int digits = 1; digits <= 17; ++digits) {
    char text[32];
    std::snprintf(text, sizeof(text), "%.*g", digits, value);
    double back;
    if (!StringRef(text).getAsDouble(back) && back == value)
      return text;
  }
  return std::to_string(value);
}
