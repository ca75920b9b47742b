// The arguments of a command line, as a script of Megatron-LM's has them: text
// to the same tree that config files become. Words as a shell splits them, over
// lines that end with a backslash or not; `#` begins a comment.

#include "lib/Config/ParseArguments.h"
#include "lib/Config/Copied.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace llvm;
using namespace accel::config;

namespace {
struct Word {
  std::string text;
  unsigned line;
  bool quoted;
  std::string unknown = {};
};
} // namespace

/// An argument's name begins with two dashes; -1 and -1e-5 are values.
static bool isName(const Word &word) {
  return !word.quoted && StringRef(word.text).starts_with("--");
}

static Expected<std::vector<Word>> splitWords(StringRef text, StringRef name) {
  std::vector<Word> words;
  unsigned line = 1;
  for (size_t at = 0; at < text.size();) {
    char c = text[at];
    bool continues =
        c == '\\' && text.substr(at + 1).ltrim("\r").starts_with("\n");
    if (isSpace(c) || continues) {
      line += c == '\n';
      ++at;
      continue;
    }
    if (c == '#') {
      at = text.find('\n', at);
      continue;
    }
    if (isParted(text.substr(at)))
      return failAt(Place{name.str(), line}, kParted);
    Word word{"", line, c == '"' || c == '\''};
    while (at < text.size() && !isSpace(text[at])) {
      c = text[at++];
      if (c == '$' || c == '`' || c == '(' || c == ')')
        return failAt(Place{name.str(), line},
                      "expected the arguments as the shell has expanded them, "
                      "found '" +
                          Twine(c) + "'");
      if (c != '"' && c != '\'') {
        word.text += c;
        continue;
      }
      size_t end = text.find(c, at);
      if (end == StringRef::npos)
        return failAt(Place{name.str(), line}, "a quote is not closed");
      StringRef inside = text.slice(at, end);
      line += inside.count('\n');
      word.text += inside;
      at = end + 1;
    }
    words.push_back(std::move(word));
  }
  return words;
}

bool accel::config::looksLikeArguments(StringRef text) {
  for (StringRef rest = text; !rest.empty(); rest = rest.split('\n').second) {
    StringRef line = rest.split('\n').first.trim();
    if (!line.empty() && !line.starts_with("#"))
      return line.starts_with("--") && line.size() > 2 && isAlpha(line[2]);
  }
  return false;
}

static Expected<Document> build(ArrayRef<Word> words, StringRef name) {
  // A dash of typesetting would be a value of the argument before it.
  for (const Word &word : words)
    if (!word.quoted && !StringRef(word.text).starts_with("--") &&
        StringRef(word.text).ltrim('-').starts_with("\xE2\x80"))
      if (std::string typeset = describeTypeset(word.text); !typeset.empty())
        return failAt(Place{name.str(), word.line},
                      "expected an argument, --name, found '" + word.text +
                          "'" + typeset);
  Document document;
  document.syntax = Syntax::Arguments;
  document.root.kind = Node::Kind::Mapping;
  document.root.place = Place{name.str(), 1};
  auto scalar = [&](const Word &word, StringRef value) {
    Node node;
    node.text = value.str();
    node.place = Place{name.str(), word.line};
    node.unknown = word.unknown;
    return node;
  };
  for (size_t at = 0; at < words.size();) {
    const Word &word = words[at++];
    assert(isName(word) && "it would be a value of the name before it");
    auto [key, value] = StringRef(word.text).split('=');
    std::vector<Node> values;
    if (key.size() < word.text.size()) {
      values.push_back(scalar(word, value));
      values.back().quoted = value.empty();
    }
    for (; at < words.size() && !isName(words[at]); ++at)
      values.push_back(scalar(words[at], words[at].text));
    Node node = scalar(word, "");
    if (values.size() == 1) {
      node = std::move(values.front());
    } else if (values.size() > 1) {
      node.kind = Node::Kind::Sequence;
      node.items = std::move(values);
    }
    document.root.entries.emplace_back(scalar(word, key), std::move(node));
  }
  return std::move(document);
}

Expected<Document> accel::config::parseArguments(StringRef text,
                                                 StringRef name) {
  Expected<std::vector<Word>> words = splitWords(text, name);
  if (!words)
    return words.takeError();
  return build(*words, name);
}

Expected<Document> accel::config::documentOfArguments(ArrayRef<Argument> words,
                                                      StringRef name) {
  std::vector<Word> result;
  for (const Argument &word : words)
    result.push_back({word.text, word.line, /*quoted=*/false, word.unknown});
  if (!result.empty() && !isName(result.front()))
    return failAt(Place{name.str(), result.front().line},
                  "expected an argument, --name, found '" +
                      result.front().text + "'" +
                      describeTypeset(result.front().text));
  return build(result, name);
}
