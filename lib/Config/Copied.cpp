// Tells the marks of web pages and terminals in a text.

#include "lib/Config/Copied.h"
#include "lib/Config/Document.h"

#include "llvm/ADT/StringExtras.h"

using namespace llvm;
using namespace accel::config;

/// `[name]` alone: a flow sequence of YAML, too, but no file of ours is one.
static bool isSection(StringRef line) {
  return line.consume_front("[") && line.consume_back("]") && !line.empty() &&
         all_of(line, [](char c) {
           return isAlnum(c) || StringRef("_-.[] ").contains(c);
         });
}

Error accel::config::refuseCopied(StringRef text, StringRef name) {
  text.consume_front("\xEF\xBB\xBF");
  unsigned number = 0;
  bool wasSection = false;
  std::string section;
  unsigned sectionLine = 0;
  for (StringRef rest = text; !rest.empty();) {
    StringRef line;
    std::tie(line, rest) = rest.split('\n');
    line = line.trim();
    ++number;
    if (line.empty() || line.starts_with("#"))
      continue;
    auto fail = [&](const Twine &message) {
      return failAt(Place{name.str(), number}, message);
    };
    if (wasSection) {
      // A list of YAML's may stand alone, and has no settings below it.
      if (!isSection(line) && !line.contains('='))
        return Error::success();
      return failAt(Place{name.str(), sectionLine},
                    "expected YAML of Accelerate, JSON of DeepSpeed or "
                    "arguments of Megatron-LM, found the section '" +
                        StringRef(section).take_front(80) +
                        "', as TOML and INI write it");
    }
    if (line.starts_with("```"))
      return fail("'" + line.take_front(80) +
                  "' is Markdown's: take it out, and the one that closes it");
    if (line.starts_with("$ "))
      return fail("'$ ' is a shell's prompt: take it out");
    if (!isSection(line))
      return Error::success();
    wasSection = true;
    section = line.str();
    sectionLine = number;
  }
  return Error::success();
}

std::string accel::config::describeTypeset(StringRef name) {
  struct Letter {
    StringLiteral bytes, code, what, meant;
    bool onlyInFront;
  };
  static constexpr Letter kLetters[] = {
      {"\xC2\xA0", "U+00A0", "a no-break space", "a blank", false},
      {"\xE2\x80\x8B", "U+200B", "a space of no width", "nothing", false},
      {"\xE2\x80\x9C", "U+201C", "a quote of typesetting", "'\"'", false},
      {"\xE2\x80\x9D", "U+201D", "a quote of typesetting", "'\"'", false},
      {"\xE2\x80\x98", "U+2018", "a quote of typesetting", "\"'\"", false},
      {"\xE2\x80\x99", "U+2019", "a quote of typesetting", "\"'\"", false},
      {"\xE2\x80\x93", "U+2013", "a dash of typesetting", "'--'", true},
      {"\xE2\x80\x94", "U+2014", "a dash of typesetting", "'--'", true}};
  const Letter *first = nullptr;
  size_t least = StringRef::npos;
  for (const Letter &one : kLetters) {
    size_t at = name.find(one.bytes);
    // `-–lr`: the first of two dashes may have been left alone.
    bool counts = !one.onlyInFront || at <= 1;
    if (at != StringRef::npos && counts && at < least)
      least = at, first = &one;
  }
  if (!first)
    return "";
  return (": " + first->code + ", " + first->what + ", stands in it: write " +
          first->meant)
      .str();
}

bool accel::config::isParted(StringRef rest) {
  if (!rest.consume_front("\\"))
    return false;
  StringRef after = rest.ltrim(" \t");
  return after.size() < rest.size() &&
         (after.starts_with("\n") || after.starts_with("\r\n"));
}
