// The grammar of a shell by recursive descent, as far as commands are told
// apart; the inside of a word is skipped with its quotes.

#include "lib/Config/Copied.h"
#include "lib/Config/Shell/Syntax.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace llvm;
using namespace accel::config;
using namespace accel::config::shell;

namespace {
class Parser {
public:
  Parser(StringRef text, StringRef name, unsigned line, bool isOneLine)
      : text(text), name(name), line(line), isOneLine(isOneLine) {}

  Expected<List> run();

private:
  char peek(size_t ahead = 0) const {
    return at + ahead < text.size() ? text[at + ahead] : '\0';
  }
  bool ended() const { return at >= text.size() || failure; }
  void fail(unsigned where, const Twine &message) {
    if (!failure)
      failure = {where, message.str()};
  }
  void advance(size_t count) {
    if (!isOneLine)
      line += text.substr(at, count).count('\n');
    at = std::min(at + count, text.size());
  }
  void skipBlanks();
  void skipLines();
  void readBodies();
  StringRef peekWord();
  bool takeWord(StringRef word);
  Word readWord();
  std::string readBetween(StringRef close);
  Word readProcess();
  bool readAssignment(Command &command);
  bool readRedirection(Command &command);
  List readList(ArrayRef<StringRef> ends);
  AndOr readAndOr();
  Pipeline readPipeline();
  Command readCommand();
  void readSimple(Command &command);
  void readIf(Command &command);
  void readFor(Command &command);
  void readCase(Command &command);
  void readTest(Command &command);
  void expectWord(StringRef word, const Command &command, StringRef opened);

  StringRef text, name;
  size_t at = 0;
  unsigned line;
  bool isOneLine;
  unsigned depth = 0;
  struct Awaited {
    std::string end;
    bool isIndented;
    std::shared_ptr<Here> here;
    unsigned line;
  };
  std::vector<Awaited> awaited; ///< whose lines follow this one
  std::optional<std::pair<unsigned, std::string>> failure;
};
} // namespace

/// Blanks, continued lines and a comment; not what ends a line.
void Parser::skipBlanks() {
  while (at < text.size()) {
    if (peek() == '\\' && text.substr(at + 1).ltrim('\r').starts_with("\n"))
      advance(text.find('\n', at) + 1 - at);
    else if (peek() == '#')
      at = std::min(text.find('\n', at), text.size());
    else if (peek() == ' ' || peek() == '\t' || peek() == '\r')
      ++at;
    else
      return;
  }
}

void Parser::skipLines() {
  for (skipBlanks(); peek() == '\n' && !failure; skipBlanks()) {
    advance(1);
    readBodies();
  }
}

/// The lines that a `<<` of the line that has ended takes.
void Parser::readBodies() {
  for (Awaited &one : std::exchange(awaited, {})) {
    for (bool closed = false; !closed;) {
      if (at >= text.size())
        return fail(one.line, "expected a line '" + one.end + "' after '<<" +
                                  one.end + "', found the end");
      StringRef whole = text.substr(at).split('\n').first;
      StringRef content = one.isIndented ? whole.ltrim('\t') : whole;
      closed = content.rtrim('\r') == one.end;
      if (!closed)
        one.here->text += (content + "\n").str();
      advance(whole.size() + 1);
    }
  }
}

/// The unquoted word that stands here, which nothing is taken of.
StringRef Parser::peekWord() {
  size_t end = at;
  while (end < text.size() && !isSpace(text[end]) &&
         !StringRef(";&|()<>\"'$`\\").contains(text[end]))
    ++end;
  bool stops = end == text.size() || isSpace(text[end]) ||
               StringRef(";&|()<>").contains(text[end]);
  return stops ? text.slice(at, end) : StringRef();
}

bool Parser::takeWord(StringRef word) {
  if (peekWord() != word)
    return false;
  advance(word.size());
  return true;
}

Word Parser::readWord() {
  Word word{"", line};
  size_t begin = at;
  while (!ended()) {
    char c = peek();
    if (isSpace(c) || StringRef(";&|()<>").contains(c))
      break;
    bool opens = c == '\'' || c == '"' || c == '`' ||
                 (c == '$' && (peek(1) == '(' || peek(1) == '{'));
    if (c == '\\') {
      if (text.substr(at + 1).ltrim('\r').starts_with("\n"))
        break;
      if (isParted(text.substr(at)))
        fail(line, kParted);
      advance(2);
    } else if (opens) {
      size_t length = lengthOfQuoted(text.substr(at));
      if (length == 0) {
        fail(line, c == '$' ? "expected what closes '$" + Twine(peek(1)) +
                                  "', found the end, or nesting deeper than " +
                                  Twine(kDeepest)
                            : Twine("a quote is not closed"));
        break;
      }
      advance(length);
    } else {
      ++at;
    }
  }
  word.text = text.slice(begin, at).str();
  return word;
}

/// What stands up to `close`, which is taken too; brackets in it are paired.
std::string Parser::readBetween(StringRef close) {
  unsigned begin = line;
  int open = 0;
  for (size_t end = at; end < text.size(); ++end) {
    if (open == 0 && text.substr(end).starts_with(close)) {
      std::string inner = text.slice(at, end).str();
      advance(end + close.size() - at);
      return inner;
    }
    open += text[end] == '(';
    open -= text[end] == ')';
  }
  fail(begin, "expected '" + close + "', found the end");
  return "";
}

/// `<(…)` or `>(…)`, whose name only the machine knows.
Word Parser::readProcess() {
  Word word{"", line};
  size_t begin = at;
  advance(2);
  (void)readBetween(")");
  word.text = "\"" + text.slice(begin, at).str() + "\"";
  llvm::erase_if(word.text, [](char c) { return c == '$' || c == '`'; });
  return word;
}

/// Reads `NAME=…` or `NAME+=…`, if that stands here.
bool Parser::readAssignment(Command &command) {
  StringRef rest = text.substr(at);
  StringRef variable = rest.take_while(isNameLetter);
  if (variable.empty() || isDigit(variable.front()))
    return false;
  Assignment made;
  made.name = variable.str();
  made.line = line;
  rest = rest.drop_front(variable.size());
  if (rest.starts_with("[")) {
    size_t end = rest.find("]");
    StringRef after = rest.substr(end == StringRef::npos ? rest.size() : end);
    if (!after.starts_with("]=") && !after.starts_with("]+="))
      return false;
    made.index = rest.slice(1, end).str();
    rest = after.drop_front();
  }
  made.adds = rest.consume_front("+");
  if (!rest.consume_front("="))
    return false;
  advance(rest.data() - text.data() - at);
  if (peek() != '(') {
    made.value = readWord();
  } else {
    made.isArray = true;
    advance(1);
    for (skipLines(); peek() != ')' && !ended(); skipLines()) {
      size_t before = at;
      made.items.push_back(readWord());
      if (at == before && !failure)
        fail(line, "expected a word of the array '" + made.name + "', found '" +
                       Twine(peek()) + "'");
    }
    if (at >= text.size())
      fail(made.line, "an array is not closed");
    advance(1);
  }
  command.assignments.push_back(std::move(made));
  return true;
}

/// What to do where `<a path>` stands for something: redirections, to a shell.
static std::string describePlaceholder(StringRef before) {
  StringRef line = before.substr(before.rfind('\n') + 1);
  size_t begin = line.rfind('<');
  if (begin == StringRef::npos)
    return "";
  return ": '" + line.substr(begin).rtrim().take_front(80).str() +
         "' stands for something, and a shell reads '<' and '>' as files: "
         "write what it stands for";
}

bool Parser::readRedirection(Command &command) {
  StringRef rest = text.substr(at), digits = rest.take_while(isDigit);
  rest = rest.drop_front(digits.size());
  Redirection made;
  for (StringRef op : {"<<<", "<<-", "<<", "<&", "<>", "<", "&>>", "&>", ">>",
                       ">&", ">|", ">"})
    if (made.op.empty() && rest.starts_with(op))
      made.op = op.str();
  if (made.op.empty() || (made.op.front() == '&' && !digits.empty()) ||
      digits.size() > 4)
    return false;
  if (made.op.size() == 1 && rest.substr(1).starts_with("("))
    return false; // <(…) is a word
  (void)digits.getAsInteger(10, made.number);
  unsigned begin = line;
  advance(digits.size() + made.op.size());
  skipBlanks();
  if ((peek() == '<' || peek() == '>') && peek(1) == '(')
    made.target = readProcess();
  else
    made.target = readWord();
  if (made.target.text.empty())
    fail(begin, "expected a file after '" + made.op + "'" +
                    describePlaceholder(text.take_front(at)));
  if (made.op == "<<" || made.op == "<<-") {
    made.here = std::make_shared<Here>();
    std::string end;
    for (char c : made.target.text)
      if (c != '"' && c != '\'' && c != '\\')
        end += c;
    made.here->isQuoted = end != made.target.text;
    awaited.push_back({end, made.op == "<<-", made.here, begin});
  }
  command.redirections.push_back(std::move(made));
  return true;
}

static bool isDeclaration(StringRef word) {
  return is_contained({"export", "local", "readonly", "declare", "typeset"},
                      word);
}

void Parser::readSimple(Command &command) {
  for (skipBlanks(); !ended(); skipBlanks()) {
    char c = peek();
    bool declares =
        !command.words.empty() && isDeclaration(command.words.front().text);
    if ((command.words.empty() || declares) && readAssignment(command))
      continue;
    if (readRedirection(command))
      continue;
    if ((c == '<' || c == '>') && peek(1) == '(') {
      command.words.push_back(readProcess());
      continue;
    }
    if (c == '(' && command.words.size() == 1 && command.assignments.empty()) {
      advance(1);
      skipBlanks();
      if (peek() != ')')
        fail(line, "expected ')' after '" + command.words[0].text + "('");
      advance(1);
      skipLines();
      command.kind = Command::Kind::Function;
      command.name = std::exchange(command.words, {}).front().text;
      command.branches.emplace_back();
      AndOr body;
      body.isOr.push_back(false);
      body.pipelines.emplace_back();
      body.pipelines.back().commands.push_back(
          std::make_shared<Command>(readCommand()));
      command.branches.back().body.push_back(std::move(body));
      return;
    }
    if (isSpace(c) || StringRef(";&|()").contains(c))
      return;
    command.words.push_back(readWord());
  }
}

void Parser::expectWord(StringRef word, const Command &command,
                        StringRef opened) {
  skipLines();
  if (!takeWord(word))
    fail(command.line, "expected '" + word + "' for this '" + opened + "'");
}

void Parser::readIf(Command &command) {
  command.kind = Command::Kind::If;
  for (bool more = true; more && !failure;) {
    Branch branch;
    branch.condition = readList({"then"});
    expectWord("then", command, "if");
    branch.body = readList({"elif", "else", "fi"});
    command.branches.push_back(std::move(branch));
    more = takeWord("elif");
  }
  if (takeWord("else")) {
    command.branches.emplace_back();
    command.branches.back().body = readList({"fi"});
  }
  expectWord("fi", command, "if");
}

void Parser::readFor(Command &command) {
  skipBlanks();
  command.branches.emplace_back();
  if (text.substr(at).starts_with("((")) {
    command.kind = Command::Kind::Count;
    advance(2);
    SmallVector<StringRef> parts;
    unsigned begin = line;
    std::string inner = readBetween("))");
    StringRef(inner).split(parts, ';');
    if (parts.size() != 3)
      return fail(begin, "expected three parts in 'for ((…))'");
    for (StringRef part : parts)
      command.words.push_back({part.str(), begin});
  } else {
    command.kind = Command::Kind::For;
    command.name = readWord().text;
    skipLines();
    command.isOverArguments = !takeWord("in");
    for (skipBlanks();
         !command.isOverArguments && !ended() && !isSpace(peek()) &&
         !StringRef(";&|()<>").contains(peek());
         skipBlanks())
      command.words.push_back(readWord());
  }
  skipBlanks();
  if (peek() == ';')
    advance(1);
  expectWord("do", command, "for");
  command.branches[0].body = readList({"done"});
  expectWord("done", command, "for");
}

void Parser::readCase(Command &command) {
  command.kind = Command::Kind::Case;
  skipBlanks();
  command.words.push_back(readWord());
  expectWord("in", command, "case");
  for (skipLines(); !ended() && peekWord() != "esac"; skipLines()) {
    Branch branch;
    if (peek() == '(')
      advance(1);
    for (bool more = true; more && !ended();) {
      skipBlanks();
      size_t before = at;
      branch.patterns.push_back(readWord());
      skipBlanks();
      more = peek() == '|';
      if (at == before || (!more && peek() != ')'))
        fail(line, "expected a pattern and ')' in 'case'");
      advance(1);
    }
    branch.body = readList({"esac", ";;", ";&"});
    if (text.substr(at).starts_with(";;&")) {
      fail(line, "';;&' is not supported");
    } else if (text.substr(at).starts_with(";;")) {
      advance(2);
    } else if (text.substr(at).starts_with(";&")) {
      branch.falls = true;
      advance(2);
    }
    command.branches.push_back(std::move(branch));
  }
  expectWord("esac", command, "case");
}

/// The words of `[[ … ]]`, operators as words of their own.
void Parser::readTest(Command &command) {
  command.kind = Command::Kind::Test;
  for (skipLines(); !ended() && !takeWord("]]"); skipLines()) {
    StringRef rest = text.substr(at);
    Word word{"", line};
    for (StringRef op : {"&&", "||", "(", ")", "<", ">"})
      if (word.text.empty() && rest.starts_with(op))
        word.text = op.str();
    if (!word.text.empty()) {
      advance(word.text.size());
    } else if (!command.words.empty() && command.words.back().text == "=~") {
      word.text = rest.take_until(isSpace).str();
      advance(word.text.size());
    } else {
      size_t before = at;
      word = readWord();
      if (at == before)
        return fail(line, "expected ']]', found '" + Twine(peek()) + "'");
    }
    command.words.push_back(std::move(word));
  }
  if (at >= text.size() && !text.ends_with("]]"))
    fail(command.line, "expected ']]' for this '[['");
}

Command Parser::readCommand() {
  Command command;
  skipBlanks();
  command.line = line;
  if (++depth > kDeepest)
    fail(line, "commands are nested deeper than " + Twine(kDeepest));
  if (failure)
    return command;
  auto readBody = [&](StringRef end) {
    command.branches.emplace_back();
    command.branches[0].body = readList({end});
  };
  if (text.substr(at).starts_with("((")) {
    advance(2);
    command.kind = Command::Kind::Arithmetic;
    command.words.push_back({readBetween("))"), line});
  } else if (peek() == '(') {
    advance(1);
    command.kind = Command::Kind::Subshell;
    readBody(")");
    if (peek() != ')')
      fail(command.line, "expected ')' for this '('");
    advance(1);
  } else if (takeWord("{")) {
    command.kind = Command::Kind::Group;
    readBody("}");
    expectWord("}", command, "{");
  } else if (takeWord("if")) {
    readIf(command);
  } else if (takeWord("for")) {
    readFor(command);
  } else if (peekWord() == "while" || peekWord() == "until") {
    command.isNegated = takeWord("until");
    StringRef opened = command.isNegated ? "until" : "while";
    (void)takeWord("while");
    command.kind = Command::Kind::While;
    command.branches.emplace_back();
    command.branches[0].condition = readList({"do"});
    expectWord("do", command, opened);
    command.branches[0].body = readList({"done"});
    expectWord("done", command, opened);
  } else if (takeWord("case")) {
    readCase(command);
  } else if (takeWord("[[")) {
    readTest(command);
  } else if (takeWord("function")) {
    skipBlanks();
    command.kind = Command::Kind::Function;
    command.name = readWord().text;
    skipBlanks();
    if (peek() == '(' && peek(1) == ')')
      advance(2);
    skipLines();
    expectWord("{", command, "function");
    readBody("}");
    expectWord("}", command, "function");
  } else {
    readSimple(command);
    --depth;
    return command;
  }
  for (skipBlanks(); !ended() && readRedirection(command);)
    skipBlanks();
  --depth;
  return command;
}

Pipeline Parser::readPipeline() {
  Pipeline pipeline;
  skipBlanks();
  for (; takeWord("!"); skipBlanks())
    pipeline.isNegated = !pipeline.isNegated;
  for (bool more = true; more && !failure;) {
    size_t before = at;
    auto command = std::make_shared<Command>(readCommand());
    if (at == before && !failure)
      fail(line, "expected a command, found '" +
                     (at < text.size() ? Twine(peek()).str() : "the end") +
                     "'");
    pipeline.commands.push_back(std::move(command));
    skipBlanks();
    more = peek() == '|' && peek(1) != '|';
    if (more) {
      advance(peek(1) == '&' ? 2 : 1);
      skipLines();
    }
  }
  return pipeline;
}

AndOr Parser::readAndOr() {
  AndOr result;
  bool isOr = false;
  for (bool more = true; more && !failure;) {
    result.isOr.push_back(isOr);
    result.pipelines.push_back(readPipeline());
    StringRef rest = text.substr(at);
    isOr = rest.starts_with("||");
    more = isOr || rest.starts_with("&&");
    if (more) {
      advance(2);
      skipLines();
    }
  }
  return result;
}

/// Commands up to one of `ends`, which stays; "" is the end of the text.
List Parser::readList(ArrayRef<StringRef> ends) {
  List list;
  auto isEnd = [&] {
    return any_of(ends, [&](StringRef end) {
      bool isSign = !end.empty() && StringRef(";)").contains(end.front());
      return isSign ? text.substr(at).starts_with(end)
                    : !end.empty() && peekWord() == end;
    });
  };
  for (skipLines(); !ended() && !isEnd(); skipLines()) {
    list.push_back(readAndOr());
    skipBlanks();
    if (isEnd())
      break;
    if (peek() == ';' || peek() == '&')
      advance(1);
    else if (!ended() && peek() != '\n')
      fail(line,
           "expected the end of a command, found '" + Twine(peek()) + "'");
  }
  return list;
}

Expected<List> Parser::run() {
  List list = readList({});
  if (!awaited.empty())
    fail(awaited.front().line, "expected a line '" + awaited.front().end +
                                   "' after '<<" + awaited.front().end +
                                   "', found the end");
  if (failure)
    return failAt(Place{name.str(), failure->first}, failure->second);
  return list;
}

Expected<List> accel::config::shell::parse(StringRef text, StringRef name,
                                           unsigned line, bool isOneLine) {
  return Parser(text, name, line, isOneLine).run();
}
