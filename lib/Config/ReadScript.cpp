// One pass over a script: each command's words are expanded as they are read,
// and what it assigns is known to the next.

#include "lib/Config/ReadScript.h"
#include "lib/Config/ParseArguments.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"

using namespace llvm;
using namespace accel::config;

static constexpr size_t kLargest = 1 << 20;
static constexpr unsigned kDeepest = 32;

namespace {
using Words = std::vector<std::string>;

class Script {
public:
  Script(StringRef text, StringRef name) : text(text), name(name) {}

  Expected<Document> run();

private:
  char peek(size_t ahead = 0) const {
    return at + ahead < text.size() ? text[at + ahead] : '\0';
  }
  bool skipBlanks();
  bool readAssignment();
  void readCommand();
  bool readWord(Words &into);
  void expand(Words &word, bool quoted);
  std::string expandText(StringRef inner);
  Words valueOf(StringRef inner, bool &isList, StringRef raw);
  void assign(StringRef variable, Words value, bool adds);
  void runCommand(Words words, unsigned line);
  void fail(const Twine &message) {
    if (!failure)
      failure = {line, message.str()};
  }
  Place here(unsigned line) const { return {name.str(), line}; }

  StringRef text, name;
  size_t at = 0;
  unsigned line = 1;
  unsigned depth = 0;   ///< of ifs and loops that are open
  bool depends = false; ///< the command is behind '&&' or '||'
  unsigned nesting = 0; ///< of expansions in expansions
  size_t expanded = 0;  ///< bytes that expansions have come to
  StringMap<Words> variables;
  StringMap<unsigned> undecided; ///< which an `if` sets, by its line
  unsigned undecidedBy = 0;      ///< the line of one that the command reads
  Words arguments;
  std::vector<unsigned> lines;     ///< of `arguments`
  std::vector<unsigned> wordLines; ///< of the words of the command
  unsigned found = 0;              ///< the line of the command of Python
  std::string ranks, machines;
  std::optional<std::pair<unsigned, std::string>> failure;
};

/// Integers, + - * / and brackets; none for anything else.
class Arithmetic {
public:
  explicit Arithmetic(StringRef text) : rest(text) {}
  std::optional<int64_t> run() {
    std::optional<int64_t> value = sum();
    return rest.ltrim().empty() ? value : std::nullopt;
  }

private:
  bool take(char c) {
    rest = rest.ltrim();
    return rest.consume_front(StringRef(&c, 1));
  }
  std::optional<int64_t> atom() {
    int64_t value;
    rest = rest.ltrim();
    if (take('(')) {
      if (++open > kDeepest)
        return std::nullopt;
      std::optional<int64_t> inner = sum();
      --open;
      return take(')') ? inner : std::nullopt;
    }
    StringRef digits = rest.take_while(isDigit);
    if (digits.empty() || digits.size() > 9 || digits.getAsInteger(10, value))
      return std::nullopt;
    rest = rest.drop_front(digits.size());
    return value;
  }
  std::optional<int64_t> product() {
    std::optional<int64_t> left = atom();
    while (left) {
      bool times = take('*'), by = !times && take('/');
      if (!times && !by)
        break;
      std::optional<int64_t> right = atom();
      if (!right || (by && *right == 0) || std::abs(*left) > (1 << 30))
        return std::nullopt;
      left = times ? *left * *right : *left / *right;
    }
    return left;
  }
  std::optional<int64_t> sum() {
    std::optional<int64_t> left = product();
    while (left) {
      bool plus = take('+'), minus = !plus && take('-');
      if (!plus && !minus)
        break;
      std::optional<int64_t> right = product();
      if (!right)
        return std::nullopt;
      left = plus ? *left + *right : *left - *right;
    }
    return left;
  }

  StringRef rest;
  unsigned open = 0; ///< brackets
};
} // namespace

static bool isNameLetter(char c) { return isAlnum(c) || c == '_'; }

/// Of a text that begins with a bracket how long it is up to the one that
/// closes it; 0 where none does.
static size_t lengthInside(StringRef text, char open, char close) {
  unsigned depth = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    depth += text[i] == open;
    depth -= text[i] == close;
    if (depth == 0)
      return i + 1;
  }
  return 0;
}

/// Passes over what separates words; true where a command ends.
bool Script::skipBlanks() {
  bool ends = false, isJoined = false;
  while (at < text.size()) {
    char c = peek();
    size_t after = at + 1;
    if (c == '\\' && text.substr(after).ltrim('\r').starts_with("\n")) {
      at = text.find('\n', at) + 1;
      ++line;
    } else if (c == '#') {
      at = std::min(text.find('\n', at), text.size());
    } else if (c == '\n' || StringRef(";&|()").contains(c)) {
      line += c == '\n';
      bool joins = (c == '&' || c == '|') && peek(1) == c;
      isJoined |= joins;
      depends = isJoined || (depends && c != '\n' && c != ';');
      at += joins;
      ends = true;
      ++at;
    } else if (isSpace(c)) {
      ++at;
    } else {
      return ends;
    }
  }
  return true;
}

Words Script::valueOf(StringRef inner, bool &isList, StringRef raw) {
  StringRef variable = inner.take_while(isNameLetter);
  StringRef rest = inner.drop_front(variable.size());
  isList = rest.consume_front("[@]") || rest.consume_front("[*]");
  if (inner == "@" || inner == "*")
    return {};
  if (auto open = undecided.find(variable); open != undecided.end())
    undecidedBy = open->second;
  auto known = variables.find(variable);
  bool isDefault = rest.consume_front(":-") || rest.consume_front(":=") ||
                   rest.consume_front("-");
  if (!variable.empty() && known != variables.end() &&
      (rest.empty() || isDefault))
    return known->second;
  if (isDefault)
    return {expandText(rest)};
  return {raw.str()};
}

std::string Script::expandText(StringRef inner) {
  if (++nesting > kDeepest)
    fail("expansions are nested deeper than " + std::to_string(kDeepest));
  StringRef outer = text;
  size_t outerAt = at;
  unsigned outerLine = line;
  text = inner;
  at = 0;
  Words word{""};
  while (at < text.size() && !failure) {
    char c = peek();
    if (c == '$')
      expand(word, true);
    else if (++at; c != '"')
      word.back() += c;
  }
  text = outer;
  at = outerAt;
  line = outerLine;
  --nesting;
  return join(word, " ");
}

/// What stands at a '$', into the word that is read and, where it is several,
/// into further ones.
void Script::expand(Words &word, bool quoted) {
  StringRef rest = text.substr(at + 1);
  bool isList = false;
  Words values;
  size_t length = 0;
  if (rest.starts_with("(") || rest.starts_with("{")) {
    length = rest.front() == '(' ? lengthInside(rest, '(', ')')
                                 : lengthInside(rest, '{', '}');
    if (length == 0) {
      fail("expected what closes '$" + rest.take_front(1) + "', found the end");
      at = text.size();
      return;
    }
  }
  if (rest.starts_with("((") && rest.take_front(length).ends_with("))") &&
      length >= 4) {
    std::string inner =
        expandText(rest.take_front(length).drop_front(2).drop_back(2));
    std::string known; // names need no '$' here
    for (StringRef left = inner; !left.empty();) {
      StringRef variable = left.take_while(isNameLetter);
      auto value = variables.find(variable);
      if (!variable.empty() && value != variables.end())
        known += join(value->second, " ");
      else
        known += left.take_front(std::max<size_t>(variable.size(), 1));
      left = left.drop_front(std::max<size_t>(variable.size(), 1));
    }
    std::optional<int64_t> value = Arithmetic(known).run();
    values = {value ? std::to_string(*value)
                    : text.substr(at, length + 1).str()};
  } else if (rest.starts_with("(")) {
    values = {text.substr(at, length + 1).str()};
    quoted = true; // one value, whatever it is
  } else if (rest.starts_with("{")) {
    values = valueOf(rest.take_front(length).drop_front().drop_back(), isList,
                     text.substr(at, length + 1));
  } else {
    length = rest.take_while(isNameLetter).size();
    if (length == 0 || isDigit(rest.front()))
      length = std::min<size_t>(1, rest.size());
    values =
        valueOf(rest.take_front(length), isList, text.substr(at, length + 1));
  }
  line += text.substr(at, length + 1).count('\n');
  at += length + 1;
  for (const std::string &value : values)
    expanded += value.size() + 1;
  if (expanded > kLargest) { // a name may double itself in every line
    fail("expected variables that come to at most 1 MiB");
    return;
  }
  if (!isList && values.size() > 1)
    values.resize(1); // $NAME is the first of an array
  bool first = true;
  for (const std::string &value : values) {
    SmallVector<StringRef> parts;
    if (quoted)
      parts.push_back(value);
    else
      SplitString(value, parts, " \t\r\n");
    for (StringRef part : parts) {
      if (!first)
        word.emplace_back();
      word.back() += part;
      first = false;
    }
  }
}

/// Reads a word; false where it is of no text at all.
bool Script::readWord(Words &into) {
  Words word{""};
  bool isQuoted = false;
  while (at < text.size() && !failure) {
    char c = peek();
    if (isSpace(c) || StringRef(";|()").contains(c) ||
        (c == '&' && !StringRef(word.back()).ends_with(">")))
      break;
    if (c == '\\') {
      if (text.substr(at + 1).ltrim('\r').starts_with("\n"))
        break;
      word.back() += peek(1);
      at += 2;
    } else if (c == '\'') {
      size_t end = std::min(text.find('\'', at + 1), text.size());
      word.back() += text.slice(at + 1, end);
      line += text.slice(at, end).count('\n');
      at = end + 1;
      isQuoted = true;
    } else if (c == '"') {
      isQuoted = true;
      unsigned begin = line;
      for (++at; at < text.size() && peek() != '"' && !failure;) {
        if (peek() == '$') {
          expand(word, true);
        } else if (peek() == '\\' && peek(1) == '\n') {
          at += 2;
          ++line;
        } else if (peek() == '\\' && StringRef("\"\\$`").contains(peek(1))) {
          word.back() += peek(1);
          at += 2;
        } else {
          line += peek() == '\n';
          word.back() += text[at++];
        }
      }
      if (at == text.size() && !failure)
        failure = {begin, "a quote is not closed"};
      ++at;
    } else if (c == '$') {
      expand(word, false);
    } else {
      word.back() += text[at++];
    }
  }
  at = std::min(at, text.size());
  if (word.size() == 1 && word.front().empty() && !isQuoted)
    return false;
  append_range(into, word);
  return true;
}

void Script::assign(StringRef variable, Words value, bool adds) {
  if (depth > 0 || depends || undecidedBy)
    undecided[variable] = undecidedBy ? undecidedBy : line;
  Words &known = variables[variable];
  if (!adds)
    known = std::move(value);
  else
    append_range(known, value);
}

/// Reads `NAME=…` or `NAME+=…`, if that stands here.
bool Script::readAssignment() {
  StringRef variable = text.substr(at).take_while(isNameLetter);
  StringRef rest = text.substr(at + variable.size());
  bool adds = rest.consume_front("+");
  if (variable.empty() || isDigit(variable.front()) || !rest.consume_front("="))
    return false;
  at = rest.data() - text.data();
  Words value;
  if (peek() != '(') {
    readWord(value);
    std::string joined = join(value, " ");
    Words &known = variables[variable];
    if (adds && !known.empty())
      joined = known.front() + joined;
    assign(variable, {joined}, /*adds=*/false);
    return true;
  }
  unsigned begin = line;
  for (++at; at < text.size() && peek() != ')' && !failure;) {
    if (isSpace(peek()) || peek() == '#' || peek() == '\\') {
      size_t before = at;
      line += peek() == '\n';
      if (peek() == '#') {
        at = std::min(text.find('\n', at), text.size());
        continue;
      }
      if (isSpace(peek())) {
        ++at;
        continue;
      }
      if (text.substr(at + 1).ltrim('\r').starts_with("\n")) {
        at = text.find('\n', at);
        continue;
      }
      at = before;
    }
    size_t before = at;
    readWord(value);
    if (at == before)
      ++at;
  }
  if (at == text.size() && !failure)
    failure = {begin, "an array is not closed"};
  ++at;
  assign(variable, std::move(value), adds);
  return true;
}

void Script::runCommand(Words words, unsigned begin) {
  auto script =
      find_if(words, [](StringRef word) { return word.ends_with(".py"); });
  if (script == words.end() || std::next(script) == words.end() || failure)
    return;
  if (found) {
    failure = {begin, "expected one command of Python, found another: the "
                      "first is in line " +
                          std::to_string(found)};
    return;
  }
  found = begin;
  if (depth > 0 || undecidedBy) {
    failure = {undecidedBy ? undecidedBy : begin,
               "an 'if', a loop, '&&' or '||' decides what the arguments are: "
               "expected them as the shell has expanded them, as 'echo' in "
               "front of the command prints them"};
    return;
  }
  for (auto word = words.begin(); word != script; ++word) {
    auto [flag, value] = StringRef(*word).split('=');
    std::string argument = flag.ltrim('-').str();
    llvm::replace(argument, '-', '_');
    std::string *into = argument == "nproc_per_node" ? &ranks
                        : argument == "nnodes"       ? &machines
                                                     : nullptr;
    if (into && !value.empty())
      *into = value.str();
    else if (into && std::next(word) != script)
      *into = *std::next(word);
  }
  // Redirections are no arguments.
  for (auto word = std::next(script); word != words.end(); ++word) {
    StringRef rest = StringRef(*word).ltrim("0123456789");
    if (rest.starts_with(">") || rest.starts_with("<")) {
      if (rest.size() == 1 || rest == ">>")
        ++word;
      if (word == words.end())
        break;
      continue;
    }
    arguments.push_back(*word);
    lines.push_back(wordLines[word - words.begin()]);
  }
}

void Script::readCommand() {
  undecidedBy = 0;
  unsigned begin = line;
  Words words;
  wordLines.clear();
  bool assigned = true;
  while (assigned) {
    assigned = readAssignment();
    if (assigned && skipBlanks())
      return;
    undecidedBy = assigned ? 0 : undecidedBy;
    // What an assignment may follow.
    for (StringRef before : {"export ", "local ", "readonly ", "declare ",
                             "then ", "else ", "do "})
      if (!assigned && words.empty() && text.substr(at).starts_with(before)) {
        at += before.size();
        skipBlanks();
        assigned = true;
      }
  }
  do {
    unsigned wordLine = line;
    size_t before = at;
    readWord(words);
    wordLines.resize(words.size(), wordLine);
    if (at == before)
      ++at; // a character that begins no word
  } while (at < text.size() && !failure && !skipBlanks());
  if (words.empty())
    return;
  StringRef first = words.front();
  if (is_contained({"if", "for", "while", "until", "case", "{"}, first))
    ++depth;
  else if (is_contained({"fi", "done", "esac", "}"}, first) && depth > 0)
    --depth;
  runCommand(std::move(words), begin);
}

Expected<Document> Script::run() {
  if (text.size() > kLargest)
    return failAt(here(1), "expected at most 1 MiB of configuration, found " +
                               Twine(text.size()) + " bytes");
  skipBlanks();
  while (at < text.size() && !failure)
    readCommand();
  if (failure)
    return failAt(here(failure->first), failure->second);
  if (!found)
    return failAt(here(1), "expected a command of Python in this script, "
                           "FILE.py with arguments, found none");
  Expected<Document> document = documentOfArguments(arguments, lines, name);
  if (!document)
    return document;
  for (auto [key, value] :
       {std::pair<StringRef, StringRef>{"nproc_per_node", ranks},
        {"nnodes", machines}}) {
    if (value.empty())
      continue;
    if (!all_of(value, isDigit))
      return failAt(here(found), "expected a number as '" + key +
                                     "' of torchrun, found '" + value + "'");
    Node node, said;
    node.text = key.str();
    said.text = value.str();
    node.place = said.place = here(found);
    document->root.entries.emplace_back(std::move(node), std::move(said));
  }
  return document;
}

bool accel::config::looksLikeScript(StringRef text, StringRef name) {
  if (name.ends_with(".sh") ||
      (text.starts_with("#!") && text.split('\n').first.contains("sh")))
    return true;
  for (StringRef rest = text; !rest.empty(); rest = rest.split('\n').second) {
    StringRef line = rest.split('\n').first.trim();
    if (!line.empty() && !line.starts_with("#"))
      return line.starts_with("torchrun ") || line.starts_with("python ") ||
             line.starts_with("python3 ");
  }
  return false;
}

Expected<Document> accel::config::readScript(StringRef text, StringRef name) {
  return Script(text, name).run();
}
