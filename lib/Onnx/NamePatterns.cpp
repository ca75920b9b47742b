// Matching of names against the user's patterns.

#include "NamePatterns.h"

#include "lib/Names/Nearest.h"
#include "llvm/ADT/STLExtras.h"

using namespace llvm;
using namespace mlir;

namespace accel::onnxio {

FailureOr<NamePatterns> NamePatterns::compile(ArrayRef<std::string> yes,
                                              ArrayRef<std::string> no,
                                              Location loc, Flags flags) {
  NamePatterns result;
  result.flags = flags;
  for (bool isYes : {true, false})
    for (const std::string &one : isYes ? yes : no) {
      auto text = std::make_unique<std::string>(one);
      Expected<GlobPattern> glob = GlobPattern::create(*text);
      if (!glob) {
        consumeError(glob.takeError());
        return emitError(loc)
               << "expected a glob pattern, found '" << one << "'";
      }
      result.patterns.push_back(
          {std::move(text), std::move(*glob), isYes, false});
    }
  return result;
}

std::optional<bool> NamePatterns::decide(ArrayRef<StringRef> names,
                                         std::string *decisive) {
  std::optional<bool> decision;
  for (Pattern &pattern : patterns) {
    if (none_of(names,
                [&](StringRef name) { return pattern.glob.match(name); }))
      continue;
    pattern.matched = true;
    if (decisive && !decision) // those that say yes come first
      *decisive = *pattern.text;
    decision = decision.value_or(false) || pattern.isYes;
  }
  return decision;
}

LogicalResult NamePatterns::checkAllMatched(ArrayRef<StringRef> names,
                                            Location loc) const {
  for (const Pattern &pattern : patterns)
    if (!pattern.matched)
      return emitError(loc) << "pattern '" << *pattern.text << "' of "
                            << (pattern.isYes ? flags.yes : flags.no)
                            << " matches no parameter, the nearest are "
                            << nearestNames(*pattern.text, names);
  return success();
}

std::string nearestNames(StringRef name, ArrayRef<StringRef> names) {
  // Part of a long dotted name is what one remembers of it.
  std::string letters = name.str();
  llvm::erase_if(letters, [](char c) { return c == '*' || c == '?'; });
  std::vector<std::pair<unsigned, StringRef>> ranked;
  for (StringRef each : names)
    ranked.emplace_back(!letters.empty() && each.contains_insensitive(letters)
                            ? 0
                            : 1 + nameDistance(letters, each),
                        each);
  llvm::stable_sort(ranked, llvm::less_first());
  std::string text;
  for (auto &[distance, each] : ArrayRef(ranked).take_front(3))
    text += (text.empty() ? "'" : ", '") + each.str() + "'";
  return text.empty() ? "none" : text;
}

} // namespace accel::onnxio
