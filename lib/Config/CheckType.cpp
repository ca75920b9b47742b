// Holds values against the types of their rows, and says what is wrong with one
// in words that a person can act on: YAML 1.1's readings, misspelt words.

#include "Schema.h"
#include "lib/Config/Copied.h"
#include "lib/Names/Nearest.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"

#include <cmath>

using namespace llvm;
using namespace accel::config;

namespace {
/// One value against one row.
class TypeCheck {
public:
  TypeCheck(const Key &key, StringRef path, const Node &node, Syntax syntax)
      : key(key), path(path), node(node), syntax(syntax) {
    if (node.kind == Node::Kind::Scalar)
      scalar = resolveScalar(node, syntax);
  }
  Expected<std::string> run();

private:
  std::optional<std::string> match(StringRef alternative);
  std::optional<std::string> matchNumber(StringRef alternative);
  std::optional<std::string> matchWord(StringRef words);
  Error complain();
  std::string expectation();
  std::string quotesWord(StringRef text, bool flag);
  /// An integer of YAML 1.1 that is none to people: 010, 1:30.
  bool isOddlyRead() const {
    StringRef digits = StringRef(node.text).ltrim("+-");
    return syntax == Syntax::Yaml && scalar &&
           scalar->type == Scalar::Type::Int &&
           (digits.contains(':') ||
            (digits.size() > 1 && digits[0] == '0' && isDigit(digits[1])));
  }
  bool isString() const {
    return scalar && scalar->type == Scalar::Type::String;
  }

  const Key &key;
  StringRef path;
  const Node &node;
  Syntax syntax;
  std::optional<Scalar> scalar; ///< none for a list or a mapping
};
} // namespace

/// A list of scalars as "a,b"; none if an item is no scalar.
static std::optional<std::string> joinList(const Node &node) {
  std::vector<std::string> items;
  for (const Node &item : node.items) {
    if (item.kind != Node::Kind::Scalar)
      return std::nullopt;
    items.push_back(item.text);
  }
  return join(items, ",");
}

static std::string describeMapping(const Node &node, Syntax syntax) {
  bool idle = node.entries.empty();
  for (auto &[name, value] : node.entries)
    if (name.text == "enabled" && value.kind == Node::Kind::Scalar) {
      // auto is what asks for nothing: nobody fills these.
      Scalar enabled = resolveScalar(value, syntax);
      idle |= (enabled.type == Scalar::Type::Bool && !enabled.flag) ||
              value.text == "auto";
    }
  return idle ? "{}" : "{...}";
}

std::optional<std::string> TypeCheck::matchNumber(StringRef alternative) {
  if (!scalar || (scalar->type != Scalar::Type::Int &&
                  scalar->type != Scalar::Type::Float))
    return std::nullopt;
  StringRef limit = alternative;
  bool whole = limit.consume_front("int");
  bool count = !whole && limit.consume_front("count");
  if (!whole && !count)
    limit.consume_front("number");
  double value = scalar->number;
  if (whole && scalar->type != Scalar::Type::Int)
    return std::nullopt;
  if (count && value != std::floor(value))
    return std::nullopt;
  // Larger integers are not all doubles: another one would be taken.
  if ((whole || count) && std::fabs(value) > 9e15)
    return std::nullopt;
  if (!std::isfinite(value))
    return std::nullopt;
  double least;
  if (limit.consume_front(">=")) {
    if (limit.getAsDouble(least) || value < least)
      return std::nullopt;
  } else if (limit == ">0" && value <= 0) {
    return std::nullopt;
  }
  // A leading zero makes a number octal, colons one of base 60: nobody means
  // it.
  if (isOddlyRead())
    return std::nullopt;
  if (whole || count)
    return std::to_string(static_cast<int64_t>(value));
  return formatNumber(value);
}

std::optional<std::string> TypeCheck::matchWord(StringRef words) {
  // An unquoted 2 is the word 2.
  if (!isString() && !(scalar && scalar->type == Scalar::Type::Int))
    return std::nullopt;
  bool anyCase = words.consume_front("~");
  for (StringRef word : split(words, ','))
    if (anyCase ? word.equals_insensitive(node.text) : word == node.text)
      return word.str();
  return std::nullopt;
}

std::optional<std::string> TypeCheck::match(StringRef alternative) {
  auto ifThat = [](bool that, std::string value) {
    return that ? std::optional<std::string>(std::move(value)) : std::nullopt;
  };
  if (alternative == "null")
    return ifThat(scalar && scalar->type == Scalar::Type::Null, "null");
  if (alternative == "auto")
    return ifThat(isString() && node.text == "auto", "auto");
  // An argument's value is text, whatever it looks like.
  if (alternative == "string")
    return ifThat(isString() || (syntax == Syntax::Arguments && scalar &&
                                 scalar->type != Scalar::Type::Null),
                  node.text);
  if (alternative == "list")
    return node.kind == Node::Kind::Sequence ? joinList(node) : std::nullopt;
  if (alternative == "mapping" || alternative.starts_with("%"))
    return ifThat(node.kind == Node::Kind::Mapping,
                  describeMapping(node, syntax));
  if (alternative == "switch" && syntax == Syntax::Arguments)
    return ifThat(scalar && scalar->type == Scalar::Type::Null, "true");
  if (alternative == "bool" || alternative == "flag" ||
      alternative == "switch") {
    if (scalar && scalar->type == Scalar::Type::Bool)
      return scalar->flag ? "true" : "false";
    // As str_to_bool takes them from the environment.
    if (alternative == "flag" && isString())
      for (auto [word, value] :
           {std::pair<StringRef, StringRef>{"true", "true"},
            {"yes", "true"},
            {"1", "true"},
            {"false", "false"},
            {"no", "false"},
            {"0", "false"}})
        if (StringRef(node.text).equals_insensitive(word))
          return value.str();
    return std::nullopt;
  }
  if (alternative.starts_with("int") || alternative.starts_with("count") ||
      alternative.starts_with("number"))
    return matchNumber(alternative);
  return matchWord(alternative);
}

/// "a bool", "an integer of at least 1 or 'auto'", …
std::string TypeCheck::expectation() {
  std::vector<std::string> parts;
  for (StringRef alternative : split(key.type, '|')) {
    StringRef limit = alternative;
    auto bounded = [&](StringRef what) {
      if (limit.consume_front(">="))
        return (what + " of at least " + limit).str();
      return limit == ">0" ? (what + " above 0").str() : what.str();
    };
    if (alternative == "null")
      continue; // legal, but no advice
    if (alternative == "auto")
      parts.push_back("'auto'");
    else if (alternative == "bool" || alternative == "flag")
      parts.push_back("true or false");
    else if (alternative == "switch" && syntax == Syntax::Arguments)
      parts.push_back("no value");
    else if (alternative == "switch")
      parts.push_back("true or false");
    else if (alternative == "string")
      parts.push_back("a string");
    else if (alternative == "list")
      parts.push_back("a list");
    else if (alternative == "mapping" || alternative.starts_with("%"))
      parts.push_back("a mapping");
    else if (limit.consume_front("int") || limit.consume_front("count"))
      parts.push_back(bounded("an integer"));
    else if (limit.consume_front("number"))
      parts.push_back(bounded("a number"));
    else
      parts.push_back(join(split(alternative.ltrim('~'), ','), ", "));
  }
  return join(parts, " or ");
}

/// What to write for an unquoted word that YAML reads as a bool: itself in
/// quotes, where that is legal, or the word that says no.
std::string TypeCheck::quotesWord(StringRef text, bool flag) {
  for (StringRef alternative : split(key.type, '|')) {
    if (alternative == "string")
      return ": write '" + text.str() + "' in quotes";
    for (StringRef word : split(alternative.ltrim('~'), ',')) {
      bool isItself = word.equals_insensitive(text);
      if (isItself && alternative.starts_with("~"))
        word = text; // in the user's letters
      if (isItself || (!flag && word.equals_insensitive("no")))
        return ": write '" + word.str() + "' in quotes";
    }
  }
  return "";
}

Error TypeCheck::complain() {
  std::string found = describeValue(node, syntax);
  StringRef text = node.text;
  std::string hint;
  bool takesWords = key.type.contains(',') || key.type.contains("string");
  if (scalar && syntax == Syntax::Yaml && !node.quoted) {
    if (scalar->type == Scalar::Type::Bool && takesWords)
      found = "unquoted " + text.str() + ", which YAML 1.1 reads as the bool " +
              (scalar->flag ? "true" : "false"),
      hint = quotesWord(text, scalar->flag);
    else if (isOddlyRead() && !takesWords)
      found = text.str() + ", which YAML 1.1 reads as the " +
              (text.contains(':') ? "base-60 " : "octal ") +
              std::to_string(scalar->integer),
      hint = text.contains(':') ? "" : ": write it without the leading zero";
    else if (isString() && looksLikeNumber(text)) {
      double value = 0;
      text.getAsDouble(value);
      found = text.str() + ", which YAML 1.1 reads as a string";
      if (value == std::floor(value) && std::fabs(value) < 9e15)
        hint = ": write " + std::to_string(static_cast<int64_t>(value));
      else
        hint = ": write its mantissa with a point and its exponent with a sign";
    } else if (scalar->type == Scalar::Type::Int && takesWords &&
               key.type.contains("string"))
      hint = ": write '" + text.str() + "' in quotes";
  }
  if (hint.empty() && scalar && scalar->type == Scalar::Type::Float &&
      scalar->number == std::floor(scalar->number) &&
      std::fabs(scalar->number) < 9e15 && key.type.contains("int"))
    hint = ": write " + std::to_string(static_cast<int64_t>(scalar->number));
  if (isString())
    hint += describeTypeset(text);
  // Python's words, with the comma that a string without quotes takes along.
  StringRef word = text.rtrim(',');
  if (syntax == Syntax::Json && scalar && isString() &&
      (word == "True" || word == "False" || word == "None"))
    hint = ": JSON writes " + (word == "None" ? "null" : word.lower());
  // A misspelt word of a few.
  if (hint.empty() && isString())
    for (StringRef alternative : split(key.type, '|')) {
      StringRef words = alternative.ltrim('~');
      if (!words.contains(','))
        continue;
      // Accelerate refuses it too, under any of its names.
      if (is_contained(split(words, ','), "no") && words.contains("bf16") &&
          StringSwitch<bool>(text.lower())
              .Cases({"fp32", "float32", "float", "32", "full"}, true)
              .Default(false))
        hint = ": full precision, float32, is 'no'";
      else
        hint = accel::suggestName(text, to_vector(split(words, ',')));
    }
  return failAt(node.place, "expected " + expectation() + " as '" + path +
                                "', found " + found + hint);
}

Expected<std::string> TypeCheck::run() {
  for (StringRef alternative : split(key.type, '|'))
    if (std::optional<std::string> value = match(alternative))
      return *value;
  return complain();
}

Expected<std::string> accel::config::checkType(const Key &key, StringRef path,
                                               const Node &node,
                                               Syntax syntax) {
  return TypeCheck(key, path, node, syntax).run();
}
