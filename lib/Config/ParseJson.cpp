// A reader of Hjson by recursive descent. Nothing of a value's type is decided
// here but what its syntax says: whether it is a string.

#include "lib/Config/ParseJson.h"
#include "lib/Config/Copied.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/ConvertUTF.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/Regex.h"

using namespace llvm;
using namespace accel::config;

namespace {
/// One text on its way to a tree. The first error is kept; after it every
/// function returns at once.
class JsonParser {
public:
  JsonParser(StringRef text, StringRef name, unsigned deepest)
      : text(text), name(name), deepest(deepest) {}

  Expected<Document> run();

private:
  /// The character at the place that is read; 0 at the end.
  char peek(size_t ahead = 0) const {
    return at + ahead < text.size() ? text[at + ahead] : '\0';
  }
  bool startsComment(size_t from) const;
  Place placeOf(size_t where);
  void fail(size_t where, const Twine &message);
  /// "'x'", or "the end".
  std::string found() const;
  /// What may have taken the bracket that is missed; empty where nothing has.
  std::string describeTaken() const;
  void beyond(size_t where, StringRef what);
  /// Passes over spaces and comments.
  void skip();
  /// Passes over a comma, if there is one; what closes may follow it.
  void skipComma(char closing);
  Node start(size_t where);
  std::string quoted();
  std::string escape(size_t begin);
  std::string multiline();
  Node key();
  Node value(unsigned depth);
  Node word();
  void members(Node &into, unsigned depth, bool braced);
  void items(Node &into, unsigned depth);

  StringRef text, name;
  unsigned deepest;
  size_t at = 0;
  size_t counted = 0, lineStart = 0; ///< How far lines have been counted.
  unsigned line = 1;
  bool failed = false;
  std::pair<Place, std::string> failure;
  /// The last text without quotes that has punctuation, and its line.
  std::pair<unsigned, StringRef> taken;
  Document document;
};
} // namespace

static bool isBlank(char c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/// What makes no word.
static bool isPunctuator(char c) {
  return c && StringRef("{}[],:").contains(c);
}

bool JsonParser::startsComment(size_t from) const {
  StringRef rest = text.substr(from);
  return rest.starts_with("#") || rest.starts_with("//") ||
         rest.starts_with("/*");
}

Place JsonParser::placeOf(size_t where) {
  if (where < counted)
    counted = 0, lineStart = 0, line = 1;
  for (; counted < where; ++counted)
    if (text[counted] == '\n')
      ++line, lineStart = counted + 1;
  return {name.str(), line, static_cast<unsigned>(where - lineStart) + 1};
}

void JsonParser::fail(size_t where, const Twine &message) {
  if (!failed)
    failure = {placeOf(where), ("malformed JSON: " + message).str()};
  failed = true;
}

std::string JsonParser::found() const {
  return at < text.size() ? "found '" + text.substr(at, 1).str() + "'"
                          : "found the end";
}

std::string JsonParser::describeTaken() const {
  if (taken.second.empty())
    return "";
  if (std::string typeset = describeTypeset(taken.second); !typeset.empty())
    return ": of '" + taken.second.take_front(80).str() + "' in line " +
           std::to_string(taken.first) + typeset;
  return ": what has no quotes goes on to the end of its line, so that '" +
         taken.second.take_front(80).str() + "' of line " +
         std::to_string(taken.first) +
         " is one text, as DeepSpeed reads it: write it as JSON";
}

void JsonParser::beyond(size_t where, StringRef what) {
  if (!document.beyondJson)
    document.beyondJson.emplace(placeOf(where), what.str());
}

void JsonParser::skip() {
  for (;;) {
    while (at < text.size() && isBlank(text[at]))
      ++at;
    if (!startsComment(at))
      return;
    beyond(at, "a comment");
    if (text.substr(at).starts_with("/*")) {
      size_t end = text.find("*/", at + 2);
      if (end == StringRef::npos)
        return fail(at, "expected '*/' at the end of a comment, found the end");
      at = end + 2;
    } else {
      at = std::min(text.find_first_of("\r\n", at), text.size());
    }
  }
}

void JsonParser::skipComma(char closing) {
  skip();
  size_t comma = at;
  if (peek() != ',') {
    if (peek() != closing && at < text.size())
      beyond(at, "no comma");
    return;
  }
  ++at;
  skip();
  if (peek() == closing)
    beyond(comma, "a comma after the last value");
}

Node JsonParser::start(size_t where) {
  Node node;
  node.place = placeOf(where);
  node.place.column = 0; // what is said of values is said of lines
  return node;
}

std::string JsonParser::escape(size_t begin) {
  auto hex = [&](size_t from) -> std::optional<uint32_t> {
    uint32_t code;
    StringRef digits = text.substr(from, 4);
    if (digits.size() < 4 || !all_of(digits, isHexDigit) ||
        digits.getAsInteger(16, code))
      return std::nullopt;
    return code;
  };
  static constexpr StringLiteral kNames = "\"'\\/bfnrt",
                                 kMeanings = "\"'\\/\b\f\n\r\t";
  if (peek() != 'u') {
    size_t which = at < text.size() ? kNames.find(peek()) : StringRef::npos;
    if (which == StringRef::npos) {
      fail(begin, "expected an escape of JSON after '\\', " + found());
      return "";
    }
    ++at;
    return kMeanings.substr(which, 1).str();
  }
  std::optional<uint32_t> code = hex(at + 1);
  if (!code) {
    fail(begin, "expected four hexadecimal digits after '\\u'");
    return "";
  }
  at += 5;
  if ((*code & 0xfc00) == 0xd800 && text.substr(at).starts_with("\\u"))
    if (std::optional<uint32_t> low = hex(at + 2);
        low && (*low & 0xfc00) == 0xdc00) {
      *code = 0x10000 + (((*code - 0xd800) << 10) | (*low - 0xdc00));
      at += 6;
    }
  char bytes[UNI_MAX_UTF8_BYTES_PER_CODE_POINT], *end = bytes;
  if (!ConvertCodePointToUTF8(*code, end)) {
    fail(begin, "expected a character after '\\u', found half of one");
    return "";
  }
  return std::string(bytes, end);
}

std::string JsonParser::quoted() {
  size_t begin = at;
  char mark = text[at++];
  if (mark == '\'')
    beyond(begin, "single quotes");
  std::string result;
  while (!failed) {
    if (at == text.size()) {
      fail(begin, "a string is not closed");
      break;
    }
    char c = text[at++];
    if (c == mark)
      break;
    if (static_cast<unsigned char>(c) < ' ')
      fail(at - 1, "a string goes on over the end of its line, or has another "
                   "control character");
    else if (c == '\\')
      result += escape(at - 1);
    else
      result += c;
  }
  return result;
}

std::string JsonParser::multiline() {
  size_t begin = at;
  beyond(begin, "a string of several lines");
  (void)placeOf(begin); // finds the line's start
  size_t indent = begin - lineStart;
  auto unindent = [&](size_t most) {
    for (; most && (peek() == ' ' || peek() == '\t' || peek() == '\r'); --most)
      ++at;
  };
  at += 3;
  unindent(text.size());
  if (peek() == '\n') {
    ++at;
    unindent(indent);
  }
  std::string result;
  while (!text.substr(at).starts_with("'''")) {
    if (at == text.size()) {
      fail(begin, "a string is not closed");
      return result;
    }
    char c = text[at++];
    if (c != '\r')
      result += c;
    if (c == '\n')
      unindent(indent);
  }
  at += 3;
  if (!result.empty() && result.back() == '\n')
    result.pop_back();
  return result;
}

Node JsonParser::key() {
  Node node = start(at);
  node.quoted = true;
  if (peek() == '"' || peek() == '\'') {
    node.text = quoted();
    return node;
  }
  size_t begin = at;
  while (at < text.size() && !isBlank(text[at]) && !isPunctuator(text[at]))
    ++at;
  node.text = text.slice(begin, at).str();
  if (node.text.empty()) {
    fail(at, "expected a key, " + found());
    return node;
  }
  beyond(begin, "a key without quotes");
  return node;
}

/// A value without quotes: up to what may follow a number or one of JSON's
/// three words, if it is one of them; else a string up to the line's end.
Node JsonParser::word() {
  static const Regex kNumber(
      "^-?(0|[1-9][0-9]*)(\\.[0-9]+)?([eE][-+]?[0-9]+)?$");
  Node node = start(at);
  if (at == text.size() || isPunctuator(peek())) {
    fail(at, "expected a value, " + found());
    return node;
  }
  size_t begin = at;
  for (bool isFirst = true;; ++at) {
    bool ends = at == text.size() || text[at] == '\n' || text[at] == '\r';
    if (!ends && !StringRef(",}]").contains(text[at]) && !startsComment(at))
      continue;
    StringRef said = text.slice(begin, at).rtrim();
    // What goes on behind punctuation is neither.
    bool isWord = isFirst && (said == "null" || said == "true" ||
                              said == "false" || kNumber.match(said));
    isFirst = false;
    if (!isWord && !ends)
      continue;
    node.text = said.str();
    node.quoted = !isWord;
    if (isWord)
      return node;
    beyond(begin, "a string without quotes");
    if (said.find_first_of(",]}") != StringRef::npos)
      taken = {node.place.line, said};
    return node;
  }
}

void JsonParser::members(Node &into, unsigned depth, bool braced) {
  into.kind = Node::Kind::Mapping;
  StringMap<unsigned> linesOf; // a file may have 100,000 keys
  skip();
  while (!failed && (braced ? peek() != '}' : at < text.size())) {
    if (at == text.size())
      return fail(at, "expected '}' at the end of the object of line " +
                          Twine(into.place.line) + ", found the end" +
                          describeTaken());
    size_t begin = at;
    Node name = key();
    skip();
    if (!failed && peek() != ':')
      return fail(at,
                  "expected ':' after the key '" + name.text + "', " + found());
    if (failed)
      return;
    if (auto [other, isNew] = linesOf.try_emplace(name.text, name.place.line);
        !isNew) {
      failed = true;
      failure = {placeOf(begin), "key '" + name.text +
                                     "' is said twice, first in line " +
                                     std::to_string(other->second)};
      return;
    }
    ++at;
    skip();
    Node said = value(depth);
    if (failed)
      return;
    skipComma(braced ? '}' : '\0');
    into.entries.emplace_back(std::move(name), std::move(said));
  }
  if (braced)
    ++at;
}

void JsonParser::items(Node &into, unsigned depth) {
  into.kind = Node::Kind::Sequence;
  skip();
  while (!failed && peek() != ']') {
    if (at == text.size())
      return fail(at, "expected ']' at the end of the list of line " +
                          Twine(into.place.line) + ", found the end" +
                          describeTaken());
    into.items.push_back(value(depth));
    if (!failed)
      skipComma(']');
  }
  ++at;
}

Node JsonParser::value(unsigned depth) {
  Node node = start(at);
  bool nests = peek() == '{' || peek() == '[';
  if (nests && depth == deepest) {
    failed = true;
    failure = {node.place,
               "nested deeper than " + std::to_string(deepest) + " levels"};
  } else if (nests) {
    bool isList = text[at++] == '[';
    isList ? items(node, depth + 1) : members(node, depth + 1, true);
  } else if (text.substr(at).starts_with("'''")) {
    node.quoted = true;
    node.text = multiline();
  } else if (peek() == '"' || peek() == '\'') {
    node.quoted = true;
    node.text = quoted();
  } else {
    return word();
  }
  return node;
}

Expected<Document> JsonParser::run() {
  document.syntax = Syntax::Json;
  size_t bad;
  if (!json::isUTF8(text, &bad))
    return failAt(placeOf(bad), "malformed JSON: expected UTF-8");
  if (text.starts_with("\xEF\xBB\xBF"))
    at = 3;
  skip();
  if (peek() == '{' || peek() == '[') {
    document.root = value(0);
    skip();
    if (!failed && at < text.size())
      fail(at, "expected the end of the file, " + found());
  } else {
    document.root = start(at);
    if (at == text.size())
      return failAt(placeOf(0),
                    "expected a mapping of keys to values, found an "
                    "empty file");
    beyond(at, "no braces around all");
    members(document.root, 1, false);
  }
  if (failed)
    return failAt(failure.first, failure.second);
  return std::move(document);
}

bool accel::config::looksLikeJson(StringRef text, StringRef name) {
  if (name.ends_with_insensitive(".json") ||
      name.ends_with_insensitive(".hjson") || name.starts_with("<JSON of "))
    return true;
  StringRef rest = text;
  rest.consume_front("\xEF\xBB\xBF");
  auto skipLines = [&](StringRef mark) {
    rest = rest.ltrim(" \t\r\n");
    while (rest.starts_with(mark))
      rest = rest.split('\n').second.ltrim(" \t\r\n");
  };
  skipLines("#");
  if (rest.starts_with("//") || rest.starts_with("/*"))
    return true;
  if (!rest.consume_front("{"))
    return false;
  skipLines("#");
  return rest.starts_with("\"") || rest.starts_with("}") ||
         rest.starts_with("//") || rest.starts_with("/*");
}

Expected<Document> accel::config::parseJson(StringRef text, StringRef name,
                                            unsigned deepest) {
  return JsonParser(text, name, deepest).run();
}
