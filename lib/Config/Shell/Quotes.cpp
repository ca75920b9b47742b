// How far quotes and expansions reach, whatever they mean.

#include "lib/Config/Shell/Syntax.h"

#include "llvm/ADT/StringExtras.h"

using namespace llvm;
using namespace accel::config::shell;

bool accel::config::shell::isNameLetter(char c) {
  return isAlnum(c) || c == '_';
}

/// The same as `lengthOfQuoted`, of which `depth` are open.
static size_t lengthOfQuoted(StringRef text, unsigned depth) {
  if (depth > kDeepest || text.empty())
    return 0;
  char open = text.front();
  if (open == '\'') {
    size_t end = text.find('\'', 1);
    return end == StringRef::npos ? 0 : end + 1;
  }
  if (open == '"' || open == '`') {
    for (size_t i = 1; i < text.size(); ++i) {
      if (text[i] == open)
        return i + 1;
      if (text[i] == '\\') {
        ++i;
      } else if (open == '"' && text[i] == '$' &&
                 StringRef("({").contains(text.substr(i + 1, 1)) &&
                 i + 1 < text.size()) {
        size_t inner = lengthOfQuoted(text.substr(i), depth + 1);
        if (inner == 0)
          return 0;
        i += inner - 1;
      }
    }
    return 0;
  }
  // $( or ${: the bracket that closes it, past quotes and further ones.
  char bracket = text[1], closing = bracket == '(' ? ')' : '}';
  unsigned brackets = 0;
  for (size_t i = 1; i < text.size(); ++i) {
    char c = text[i];
    bool opens = c == '$' && i + 1 < text.size() &&
                 StringRef("({").contains(text[i + 1]);
    if (c == '\\') {
      ++i;
    } else if (c == '\'' && bracket == '{' && depth > 0) {
      continue; // in double quotes an apostrophe is one
    } else if (c == '\'' || c == '"' || c == '`' || opens) {
      size_t inner = lengthOfQuoted(text.substr(i), depth + 1);
      if (inner == 0)
        return 0;
      i += inner - 1;
    } else if (c == bracket) {
      ++brackets;
    } else if (c == closing && --brackets == 0) {
      return i + 1;
    }
  }
  return 0;
}

size_t accel::config::shell::lengthOfQuoted(StringRef text) {
  return ::lengthOfQuoted(text, 0);
}
