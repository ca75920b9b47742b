// What quotes and '$' make of a word.

#include "lib/Config/Shell/Arithmetic.h"
#include "lib/Config/Shell/Run.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace llvm;
using namespace accel::config;
using namespace accel::config::shell;

namespace accel::config::shell {
/// The fields of one word.
class Expander {
public:
  Expander(Runner &runner, unsigned line, bool splits, bool asPattern)
      : runner(runner), line(line), splits(splits), asPattern(asPattern) {}

  /// A quote is a letter, as in what `<<` takes.
  bool keepsQuotes = false;

  void expand(StringRef raw, bool isQuoted);
  std::vector<Text> take() {
    close();
    return std::move(fields);
  }

private:
  void put(StringRef text, bool isQuoted);
  void putValue(const Text &value, bool isQuoted);
  void close() {
    if (isOpen)
      fields.push_back(std::move(field));
    field = {};
    isOpen = false;
  }
  /// What stands behind `:-` and the like.
  void expandWord(StringRef word, bool isQuoted) {
    ++inBraces;
    expand(word, isQuoted);
    --inBraces;
  }
  size_t expandDollar(StringRef rest, bool isQuoted);
  void expandBraced(StringRef inner, StringRef raw, bool isQuoted);
  void expandName(StringRef name, StringRef raw, bool isQuoted);
  void putAll(ArrayRef<Text> values, bool isQuoted, bool joins);
  Variable lookUp(StringRef name, StringRef raw, bool saysUnset);
  void shorten(Text &value, StringRef op, StringRef pattern);
  void replace(Text &value, StringRef rest);
  void cut(Text &value, StringRef rest);

  Runner &runner;
  unsigned line;
  bool splits, asPattern;
  std::vector<Text> fields;
  Text field;
  bool isOpen = false;
  unsigned inBraces = 0;
};
} // namespace accel::config::shell

void Expander::put(StringRef text, bool isQuoted) {
  if (!isOpen)
    field.line = line;
  isOpen = true;
  for (char c : text) {
    if (asPattern && isQuoted && StringRef("*?[]\\").contains(c))
      field.text += '\\';
    field.text += c;
  }
  runner.spend(text.size());
}

void Expander::putValue(const Text &value, bool isQuoted) {
  if (value.unknown && !field.unknown)
    field.unknown = value.unknown;
  if (isQuoted || !splits) {
    put(value.text, isQuoted);
    return;
  }
  if (value.unknown) {
    put(value.text, false);
    field.mayBeSeveral = true;
    return;
  }
  for (StringRef rest = value.text; !rest.empty();) {
    StringRef part = rest.take_until(isSpace);
    if (!part.empty())
      put(part, false);
    rest = rest.drop_front(part.size());
    if (!rest.empty())
      close();
    rest = rest.ltrim();
  }
}

void Expander::putAll(ArrayRef<Text> values, bool isQuoted, bool joins) {
  if (joins && isQuoted)
    put("", true);
  for (auto [i, value] : enumerate(values)) {
    if (i > 0 && (joins || !splits))
      put(" ", isQuoted);
    else if (i > 0)
      close();
    putValue(value, isQuoted);
    if (splits && !joins && isOpen && value.line)
      field.line = value.line; // where the array has it
  }
}

/// The variable of a name; one of a raw text where it has none.
Variable Expander::lookUp(StringRef name, StringRef raw, bool saysUnset) {
  Variable missing;
  missing.isUnset = true;
  if (name == "#") {
    Text count{std::to_string(runner.state.arguments.size()), line, {}};
    count.unknown = runner.state.argumentsUnknown;
    missing.items = {count};
    missing.isUnset = false;
    return missing;
  }
  unsigned number = 0;
  if (!name.getAsInteger(10, number) && number > 0) {
    if (number <= runner.state.arguments.size()) {
      missing.items = {runner.state.arguments[number - 1]};
      missing.items[0].unknown = runner.state.argumentsUnknown
                                     ? runner.state.argumentsUnknown
                                     : missing.items[0].unknown;
      missing.isUnset = false;
      return missing;
    }
  } else if (auto known = runner.state.variables.find(name.str());
             known != runner.state.variables.end()) {
    return known->second;
  }
  if (saysUnset && !runner.state.environment)
    return missing;
  Reason why = saysUnset
                   ? runner.state.environment
                   : runner.makeReason(
                         line, "'" + raw + "', which the script does not set,",
                         isNameLetter(name.front())
                             ? "--set-var " + name + "=VALUE says it"
                             : Twine(kArgumentsAlone));
  missing.items = {Text{raw.str(), line, why}};
  return missing;
}

void Expander::expandName(StringRef name, StringRef raw, bool isQuoted) {
  if (name == "@" || name == "*") {
    if (runner.state.argumentsUnknown)
      return putValue({raw.str(), line, runner.state.argumentsUnknown},
                      isQuoted);
    return putAll(runner.state.arguments, isQuoted, name == "*");
  }
  Variable variable = lookUp(name, raw, false);
  if (variable.items.empty())
    return;
  putValue(variable.items.front(), isQuoted);
}

/// `#`, `##`, `%`, `%%`: the shortest or longest end or begin that a pattern
/// covers is gone.
void Expander::shorten(Text &value, StringRef op, StringRef raw) {
  Text pattern = runner.expandText(raw, line, /*asPattern=*/true);
  if (!value.unknown)
    value.unknown = pattern.unknown;
  bool isFront = op.front() == '#', isLongest = op.size() == 2;
  StringRef text = value.text;
  if (value.unknown || text.size() > 4096)
    return runner.spend(text.size());
  for (size_t i = 0; i <= text.size(); ++i) {
    size_t length = isLongest ? text.size() - i : i;
    std::optional<bool> fits =
        matches(pattern.text,
                isFront ? text.take_front(length) : text.take_back(length));
    runner.spend(8);
    if (fits && *fits) {
      value.text =
          (isFront ? text.drop_front(length) : text.drop_back(length)).str();
      return;
    }
  }
}

/// `/a/b`, `//a/b`, of texts without patterns.
void Expander::replace(Text &value, StringRef rest) {
  bool isAll = rest.consume_front("/");
  auto [from, to] = rest.split('/');
  Text search = runner.expandText(from, line, /*asPattern=*/true);
  Text put = runner.expandText(to, line);
  for (const Text *one : {&search, &put})
    if (!value.unknown)
      value.unknown = one->unknown;
  if (!value.unknown &&
      StringRef(search.text).find_first_of("*?[\\#%") != StringRef::npos)
    value.unknown = runner.makeReason(line, "what '${…/" + rest + "}' makes",
                                      kArgumentsAlone);
  if (value.unknown || search.text.empty())
    return;
  std::string made;
  StringRef left = value.text;
  for (bool more = true; more;) {
    size_t at = left.find(search.text);
    more = at != StringRef::npos;
    made += left.take_front(at);
    if (more) {
      made += put.text;
      left = left.drop_front(at + search.text.size());
    }
    if (made.size() > (1 << 20))
      return runner.spend(made.size());
    if (more && !isAll) {
      made += left;
      more = false;
    }
  }
  value.text = made;
}

/// `:FROM` and `:FROM:LENGTH`.
void Expander::cut(Text &value, StringRef rest) {
  auto [from, length] = rest.split(':');
  Text begin = runner.compute(from, line, from);
  Text count{std::to_string(value.text.size()), line, {}};
  if (rest.contains(':'))
    count = runner.compute(length, line, length);
  for (const Text *one : {&begin, &count})
    if (!value.unknown)
      value.unknown = one->unknown;
  int64_t first = 0, size = 0;
  if (value.unknown || StringRef(begin.text).getAsInteger(10, first) ||
      StringRef(count.text).getAsInteger(10, size))
    return;
  int64_t whole = value.text.size();
  if (first < 0)
    first = std::max<int64_t>(0, whole + first);
  first = std::min(first, whole);
  if (size < 0)
    size = std::max<int64_t>(0, whole - first + size);
  value.text = value.text.substr(first, size);
}

void Expander::expandBraced(StringRef inner, StringRef raw, bool isQuoted) {
  bool isLength = inner.size() > 1 && inner.front() == '#';
  bool isIndirect = inner.size() > 1 && inner.front() == '!';
  if (isLength || isIndirect)
    inner = inner.drop_front();
  StringRef name = inner.take_while(isNameLetter);
  if (isDigit(inner.empty() ? '\0' : inner.front()))
    name = inner.take_while(isDigit);
  else if (name.empty())
    name = inner.take_front();
  StringRef rest = inner.drop_front(name.size());
  auto putUnknown = [&](const Twine &what) {
    putValue({raw.str(), line, runner.makeReason(line, what, kArgumentsAlone)},
             isQuoted);
  };
  if (name.empty() || isIndirect)
    return putUnknown("what '" + raw + "' stands for");
  std::optional<StringRef> index;
  if (rest.starts_with("[")) {
    size_t end = rest.find(']');
    if (end == StringRef::npos)
      return putUnknown("what '" + raw + "' stands for");
    index = rest.slice(1, end);
    rest = rest.drop_front(end + 1);
  }
  StringRef op;
  for (StringRef one : {":-", ":=", ":+", ":?", "-", "=", "+", "?", "##", "#",
                        "%%", "%", "/", "^^", ",,", ":"})
    if (op.empty() && rest.starts_with(one))
      op = one;
  StringRef word = rest.drop_front(op.size());
  if (op.empty() && !rest.empty())
    return putUnknown("what '" + raw + "' stands for");
  bool isAll = (index && (*index == "@" || *index == "*")) ||
               (!index && (name == "@" || name == "*"));
  bool joins = (index && *index == "*") || (!index && name == "*");
  char kind = op.empty() ? '\0' : op.back();
  bool asks = kind != '\0' && StringRef("-=+?").contains(kind) &&
              (op.size() == 1 || op.front() == ':');
  Variable variable;
  if (name == "@" || name == "*") {
    variable.items = runner.state.arguments;
    variable.isArray = true;
    variable.unknown = runner.state.argumentsUnknown;
  } else {
    variable = lookUp(name, raw, asks);
  }
  if (variable.unknown)
    return putValue({raw.str(), line, variable.unknown}, isQuoted);
  if (isLength) {
    const Text *first = variable.items.empty() ? nullptr : &variable.items[0];
    if (!isAll && first && first->unknown)
      return putValue({raw.str(), line, first->unknown}, isQuoted);
    size_t length = isAll   ? variable.items.size()
                    : first ? first->text.size()
                            : 0;
    return put(std::to_string(length), isQuoted);
  }
  std::vector<Text> values = variable.items;
  if (index && !isAll) {
    Text at = runner.compute(*index, line, *index);
    int64_t number = 0;
    if (at.unknown || StringRef(at.text).getAsInteger(10, number))
      return putUnknown("what '" + raw + "' stands for");
    if (number < 0)
      number += int64_t(values.size());
    values = number >= 0 && number < int64_t(values.size())
                 ? std::vector<Text>{values[number]}
                 : std::vector<Text>{};
  } else if (!isAll && values.size() > 1) {
    values.resize(1); // $NAME is the first of an array
  }
  if (asks) {
    bool isEmpty =
        values.empty() || (op.front() == ':' && values.size() == 1 &&
                           values[0].text.empty() && !values[0].unknown);
    // Whether an unknown value is empty, nobody knows.
    if (!values.empty() && values[0].unknown && op.front() == ':')
      return putValue({raw.str(), line, values[0].unknown}, isQuoted);
    if (kind == '?' && isEmpty) {
      Text message = runner.expandText(word, line);
      return runner.fail(line, "'" + name +
                                   "' is not set, which the script "
                                   "asks for by '" +
                                   raw + "': --set-var " + name +
                                   "=VALUE says it");
    }
    if (kind == '+')
      return isEmpty ? void() : expandWord(word, isQuoted);
    if (isEmpty && kind == '=') {
      Variable made;
      made.items = {runner.expandText(word, line)};
      runner.setVariable(name.str(), std::move(made));
    }
    if (isEmpty && kind != '?')
      return expandWord(word, isQuoted);
    return putAll(values, isQuoted, joins);
  }
  for (Text &value : values) {
    if (op == ":")
      cut(value, word);
    else if (op == "/")
      replace(value, word);
    else if (op == "^^")
      value.text = StringRef(value.text).upper();
    else if (op == ",,")
      value.text = StringRef(value.text).lower();
    else if (!op.empty())
      shorten(value, op, word);
  }
  if (isAll)
    return putAll(values, isQuoted, joins);
  if (!values.empty())
    putValue(values.front(), isQuoted);
}

/// What stands at a '$'; how long that is.
size_t Expander::expandDollar(StringRef rest, bool isQuoted) {
  if (rest.starts_with("$'") && !isQuoted) {
    size_t length = lengthOfQuoted(rest.drop_front());
    StringRef inner = rest.substr(2, length - 2);
    if (!inner.contains('\\'))
      put(inner, true);
    else
      putValue(
          {rest.take_front(length + 1).str(), line,
           runner.makeReason(
               line, "what \"" + rest.take_front(length + 1) + "\" stands for",
               kArgumentsAlone)},
          true);
    return length + 1;
  }
  if (rest.starts_with("$(") || rest.starts_with("${")) {
    size_t length = lengthOfQuoted(rest);
    StringRef raw = rest.take_front(length);
    if (length == 0) {
      runner.fail(line, "expected what closes '" + rest.take_front(2) +
                            "', found the end");
      return rest.size();
    }
    if (raw.starts_with("${"))
      expandBraced(raw.drop_front(2).drop_back(), raw, isQuoted);
    else if (raw.starts_with("$((") && raw.ends_with("))"))
      putValue(runner.compute(raw.drop_front(3).drop_back(2), line, raw),
               isQuoted);
    else
      putValue(runner.capture(raw.drop_front(2).drop_back(), line, raw),
               isQuoted);
    return length;
  }
  StringRef name = rest.drop_front().take_while(isNameLetter);
  if (name.empty() || isDigit(name.front()))
    name = rest.substr(1, 1);
  if (name.empty() || !(isNameLetter(name.front()) ||
                        StringRef("@*#?$!-").contains(name.front()))) {
    put("$", isQuoted);
    return 1;
  }
  expandName(name, rest.take_front(1 + name.size()), isQuoted);
  return 1 + name.size();
}

void Expander::expand(StringRef raw, bool isQuoted) {
  if (++runner.depth > kDeepestRun)
    runner.fail(line,
                "expansions are nested deeper than " + Twine(kDeepestRun));
  for (size_t at = 0; at < raw.size() && !runner.failure;) {
    char c = raw[at];
    StringRef rest = raw.substr(at);
    if (c == '$') {
      at += expandDollar(rest, isQuoted);
    } else if (c == '`') {
      size_t length = lengthOfQuoted(rest);
      if (length == 0) {
        runner.fail(line, "a quote is not closed");
        break;
      }
      putValue(runner.capture(rest.slice(1, length - 1), line,
                              rest.take_front(length)),
               isQuoted);
      at += length;
    } else if (c == '"' && !keepsQuotes) {
      size_t length = isQuoted ? 1 : lengthOfQuoted(rest);
      if (length == 0) {
        runner.fail(line, "a quote is not closed");
        break;
      }
      if (!isQuoted) {
        StringRef inner = rest.slice(1, length - 1);
        // "${A[@]}" of an empty array is no word at all.
        bool isList = inner == "$@" || inner == "${@}" ||
                      (inner.starts_with("${") && inner.ends_with("[@]}"));
        if (!isList)
          put("", true);
        expand(inner, true);
      }
      at += length;
    } else if (c == '\'' && !isQuoted) {
      size_t length = std::max<size_t>(lengthOfQuoted(rest), 2);
      put(rest.slice(1, length - 1), true);
      at += length;
    } else if (c == '\\') {
      StringRef after = raw.substr(at + 1);
      size_t ends = after.starts_with("\r\n") ? 2 : after.starts_with("\n");
      char next = after.empty() ? ' ' : after.front();
      bool escapes = !isQuoted || (StringRef("\"\\$`").contains(next) &&
                                   !(keepsQuotes && next == '"'));
      if (ends == 0 && !escapes)
        put("\\", true);
      else if (ends == 0)
        put(after.take_front(), true);
      at += 1 + (ends ? ends : escapes);
    } else {
      size_t end = raw.find_first_of("$`\"'\\", at + 1);
      StringRef plain = raw.slice(at, end);
      if (inBraces && !isQuoted)
        putValue({plain.str(), line, {}}, false); // comes apart as a value does
      else
        put(plain, isQuoted);
      if (splits && !isQuoted && !field.unknown &&
          (plain.find_first_of("*?") != StringRef::npos ||
           (plain.contains('{') && plain.contains('}') &&
            (plain.contains(',') || plain.contains("..")))))
        field.unknown = runner.makeReason(line, "what '" + raw + "' covers",
                                          "quote it or write it out");
      at += plain.size();
    }
  }
  --runner.depth;
}

std::vector<Text> Runner::expandWords(ArrayRef<Word> words) {
  std::vector<Text> fields;
  for (const Word &word : words) {
    Expander expander(*this, word.line, /*splits=*/true, /*asPattern=*/false);
    expander.expand(word.text, false);
    append_range(fields, expander.take());
  }
  return fields;
}

Text Runner::expandText(StringRef raw, unsigned line, bool asPattern) {
  Expander expander(*this, line, /*splits=*/false, asPattern);
  expander.expand(raw, false);
  std::vector<Text> fields = expander.take();
  return fields.empty() ? Text{"", line, {}} : fields.front();
}

Text Runner::expandHere(const Here &here, unsigned line) {
  if (here.isQuoted)
    return {here.text, line, {}};
  Expander expander(*this, line, /*splits=*/false, /*asPattern=*/false);
  expander.keepsQuotes = true;
  expander.expand(here.text, true);
  std::vector<Text> fields = expander.take();
  return fields.empty() ? Text{"", line, {}} : fields.front();
}

Text Runner::compute(StringRef inner, unsigned line, StringRef raw) {
  Text expanded = expandText(inner, line);
  Text value{raw.str(), line, expanded.unknown};
  Reason unknown = expanded.unknown;
  auto read = [&](StringRef name) -> std::optional<int64_t> {
    // A variable may hold an expression in turn; numbers are what is read.
    auto known = state.variables.find(name.str());
    int64_t number = 0;
    if (known == state.variables.end() || known->second.items.empty()) {
      if (known == state.variables.end() && !unknown)
        unknown =
            makeReason(line, "'" + name + "', which the script does not set,",
                       "--set-var " + name + "=VALUE says it");
      return known == state.variables.end() ? std::nullopt
                                            : std::optional<int64_t>(0);
    }
    const Text &text = known->second.items.front();
    if (!unknown)
      unknown = text.unknown;
    if (text.unknown)
      return std::nullopt;
    if (text.text.empty())
      return 0;
    if (StringRef(text.text).trim().getAsInteger(10, number) ||
        (text.text.size() > 1 && text.text.front() == '0'))
      return std::nullopt;
    return number;
  };
  auto write = [&](StringRef name, int64_t number) {
    Variable made;
    made.items = {Text{std::to_string(number), line, {}}};
    setVariable(name.str(), std::move(made));
  };
  if (!unknown) {
    if (std::optional<int64_t> number = evaluate(expanded.text, read, write))
      return {std::to_string(*number), line, {}};
  }
  value.unknown = unknown ? unknown
                          : makeReason(line, "what '" + raw + "' comes to",
                                       kArgumentsAlone);
  return value;
}

Text Runner::capture(StringRef inner, unsigned line, StringRef raw) {
  if (++depth > kDeepestRun) {
    fail(line, "expansions are nested deeper than " + Twine(kDeepestRun));
    return {};
  }
  Text printed{"", line, {}};
  Expected<List> list = parse(inner, name, line);
  if (!list) {
    consumeError(list.takeError());
    printed.unknown =
        makeReason(line, "what '" + raw + "' prints", kArgumentsAlone);
  } else {
    Text *outer = std::exchange(output, &printed);
    ++captures;
    Status before = status;
    (void)runChild([&] { return runList(*list); }, /*isProcess=*/false);
    --captures;
    output = outer;
    if (!printed.unknown)
      status = before;
  }
  --depth;
  if (printed.unknown && !printed.unknown->isUndecided)
    printed.unknown = makeReason(line, "what '" + raw + "' prints",
                                 "--set-var says the variable that it is put "
                                 "in, or " +
                                     Twine(kArgumentsAlone));
  if (printed.unknown)
    return {raw.str(), line, printed.unknown};
  printed.text = StringRef(printed.text).rtrim('\n').str();
  return printed;
}
