// Text to a tree of nodes, by LLVM's YAML parser: it is lazy (depth is ours to
// bound), reports by SourceMgr, and hands out each scalar's own bytes. JSON has
// a reader of its own.

#include "lib/Config/Copied.h"
#include "lib/Config/ParseJson.h"

#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/Twine.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/YAMLParser.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;
using namespace accel::config;

static constexpr size_t kLargestDocument = 1 << 20;
static constexpr unsigned kDeepest = 32;

char ConfigError::ID = 0;

std::string Place::str() const {
  if (!isFile())
    return file;
  std::string text = file + ":" + std::to_string(line);
  return column ? text + ":" + std::to_string(column) : text;
}

ConfigError::ConfigError(Place place, StringRef text)
    : place(std::move(place)) {
  // A message is one line, whatever a file has for a key, and no page: of a
  // long one the middle is left out, since its way out stands at the end.
  constexpr size_t kLongest = 2000, kTail = 500;
  std::string shortened;
  if (text.size() > kLongest) {
    shortened =
        (text.take_front(kLongest - kTail) + " … " + text.take_back(kTail))
            .str();
    text = shortened;
  }
  for (char c : text) {
    if (c == '\n')
      message += "\\n";
    else
      message += static_cast<unsigned char>(c) < ' ' ? '?' : c;
  }
}

void ConfigError::log(raw_ostream &os) const {
  os << (place.isFile() ? place.str() : "acc-opt") << ": error: " << message;
}

std::error_code ConfigError::convertToErrorCode() const {
  return inconvertibleErrorCode();
}

Error accel::config::failAt(const Place &place, const Twine &message) {
  return make_error<ConfigError>(place, message.str());
}

namespace {
/// One text on its way to a tree. The first error is kept; after it every
/// function returns at once.
class DocumentParser {
public:
  DocumentParser(StringRef text, StringRef name) : text(text), name(name) {
    sources.setDiagHandler(
        [](const SMDiagnostic &diagnostic, void *self) {
          auto *parser = static_cast<DocumentParser *>(self);
          std::string message = diagnostic.getMessage().lower();
          parser->fail(std::max(diagnostic.getLineNo(), 1), message);
        },
        this);
  }

  Expected<Document> run();

private:
  void fail(unsigned line, const Twine &message) {
    if (!failed)
      failure = {Place{name.str(), line}, message.str()};
    failed = true;
  }
  /// Counts from the place asked for last: places mostly come in order.
  unsigned lineOf(const char *at) {
    if (at < counted)
      counted = text.data(), lines = 1;
    lines += StringRef(counted, at - counted).count('\n');
    counted = at;
    return lines;
  }
  /// The parser gives a node without text no place: then `fallback`.
  unsigned lineOf(yaml::Node *node, unsigned fallback) {
    const char *at = node ? node->getSourceRange().Start.getPointer() : nullptr;
    if (!at || at < text.begin() || at > text.end())
      return fallback;
    return lineOf(at);
  }
  Node build(yaml::Node *node, unsigned depth, unsigned line);
  void buildMapping(yaml::MappingNode *mapping, unsigned depth, Node &into);
  bool checkIndentation();

  StringRef text, name;
  const char *counted = text.data();
  unsigned lines = 1; ///< Of the text up to `counted`.
  SourceMgr sources;
  bool failed = false;
  std::pair<Place, std::string> failure;
};
} // namespace

/// Brackets open at once, outside double quotes: what recursion would go down.
static unsigned deepestBracket(StringRef text) {
  unsigned depth = 0, deepest = 0;
  bool quoted = false;
  for (size_t at = 0; at < text.size(); ++at) {
    char c = text[at];
    if (quoted && c == '\\')
      ++at;
    else if (c == '"')
      quoted = !quoted;
    else if (!quoted && (c == '{' || c == '['))
      deepest = std::max(deepest, ++depth);
    else if (!quoted && (c == '}' || c == ']') && depth)
      --depth;
  }
  return deepest;
}

/// Tabs indent nothing in YAML; LLVM's parser lets some pass.
bool DocumentParser::checkIndentation() {
  unsigned number = 0;
  for (StringRef line : split(text, '\n')) {
    ++number;
    StringRef blank =
        line.take_while([](char c) { return c == ' ' || c == '\t'; });
    StringRef rest = line.drop_front(blank.size()).rtrim();
    if (blank.contains('\t') && !rest.empty() && !rest.starts_with("#")) {
      fail(number, "expected spaces as indentation, found a tab");
      return false;
    }
  }
  return true;
}

void DocumentParser::buildMapping(yaml::MappingNode *mapping, unsigned depth,
                                  Node &into) {
  into.kind = Node::Kind::Mapping;
  StringMap<unsigned> linesOf; // a file may have 100,000 keys
  for (yaml::KeyValueNode &entry : *mapping) {
    if (failed)
      return;
    Node key = build(entry.getKey(), depth + 1, into.place.line);
    if (failed)
      return;
    if (key.kind != Node::Kind::Scalar)
      return fail(
          key.place.line,
          "expected a name as key, found a " +
              Twine(key.kind == Node::Kind::Mapping ? "mapping" : "list"));
    if (auto [other, isNew] = linesOf.try_emplace(key.text, key.place.line);
        !isNew)
      return fail(key.place.line, "key '" + key.text +
                                      "' is said twice, first in line " +
                                      Twine(other->second));
    Node value = build(entry.getValue(), depth + 1, key.place.line);
    if (failed)
      return;
    into.entries.emplace_back(std::move(key), std::move(value));
  }
}

Node DocumentParser::build(yaml::Node *node, unsigned depth, unsigned line) {
  Node result;
  result.place = {name.str(), lineOf(node, line)};
  if (failed || !node)
    return result;
  line = result.place.line;
  if (depth > kDeepest) {
    fail(line, "nested deeper than " + Twine(kDeepest) + " levels");
    return result;
  }
  if (!node->getAnchor().empty() || isa<yaml::AliasNode>(node)) {
    fail(line, "expected plain values, found a YAML anchor or alias");
    return result;
  }
  if (!node->getRawTag().empty()) {
    fail(line, "expected plain values, found the YAML tag '" +
                   node->getRawTag() + "'");
    return result;
  }
  if (auto *scalar = dyn_cast<yaml::ScalarNode>(node)) {
    StringRef raw = scalar->getRawValue();
    result.quoted = raw.starts_with("'") || raw.starts_with("\"");
    SmallString<64> storage;
    result.text = scalar->getValue(storage).str();
  } else if (auto *block = dyn_cast<yaml::BlockScalarNode>(node)) {
    result.quoted = true;
    result.text = block->getValue().str();
  } else if (auto *sequence = dyn_cast<yaml::SequenceNode>(node)) {
    result.kind = Node::Kind::Sequence;
    for (yaml::Node &item : *sequence) {
      if (failed)
        break;
      result.items.push_back(build(&item, depth + 1, line));
    }
  } else if (auto *mapping = dyn_cast<yaml::MappingNode>(node)) {
    buildMapping(mapping, depth, result);
  }
  return result; // a null node is a plain scalar without text
}

Expected<Document> DocumentParser::run() {
  Place start{name.str(), 1};
  if (text.size() > kLargestDocument)
    return failAt(start, "expected at most 1 MiB of configuration, found " +
                             Twine(text.size()) + " bytes");
  if (text.contains('\0'))
    return failAt(start, "expected text, found a zero byte");
  Document document;
  if (looksLikeJson(text, name)) {
    Expected<Document> json = parseJson(text, name, kDeepest);
    if (!json)
      return json.takeError();
    document = std::move(*json);
  } else if (deepestBracket(text) > kDeepest) {
    return failAt(start, "nested deeper than " + Twine(kDeepest) + " levels");
  } else if (checkIndentation()) {
    yaml::Stream stream(MemoryBufferRef(text, name), sources,
                        /*ShowColors=*/false);
    yaml::document_iterator at = stream.begin();
    if (!failed && at != stream.end())
      document.root = build(at->getRoot(), 0, 1);
    if (!failed && at != stream.end() && !stream.failed() &&
        ++at != stream.end() && !failed)
      fail(lineOf(at->getRoot(), document.root.place.line),
           "expected one YAML document, found another");
    if (stream.failed())
      fail(1, "malformed YAML");
  }
  if (failed)
    return failAt(failure.first, failure.second);
  if (document.root.kind != Node::Kind::Mapping)
    return failAt(
        start,
        "expected a mapping of keys to values, found " +
            Twine(document.root.kind == Node::Kind::Sequence ? "a list"
                  : document.root.text.empty()
                      ? "an empty file"
                      : "the text '" +
                            StringRef(document.root.text).take_front(40).str() +
                            "'" + describeTypeset(document.root.text)));
  return document;
}

Expected<Document> accel::config::parseDocument(StringRef text,
                                                StringRef name) {
  return DocumentParser(text, name).run();
}
