// Damerau and Levenshtein's distance, in the form in which no letter is edited
// twice (optimal string alignment).

#include "Nearest.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVectorExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace llvm;

/// More letters than any legal name has, twice.
static constexpr size_t kLongest = 128;

/// The least number of edits from one name to the other, of lower-case letters.
static unsigned countEdits(StringRef from, StringRef to) {
  // Rows of the table of distances between prefixes: of from[..i-2], [..i-1]
  // and [..i] to each prefix of `to`.
  std::vector<unsigned> before(to.size() + 1), last(to.size() + 1),
      row(to.size() + 1);
  for (size_t j = 0; j <= to.size(); ++j)
    row[j] = j;
  for (size_t i = 1; i <= from.size(); ++i) {
    before.swap(last);
    last.swap(row);
    row[0] = i;
    for (size_t j = 1; j <= to.size(); ++j) {
      unsigned same = from[i - 1] == to[j - 1] ? 0 : 1;
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + same});
      bool exchanged = i > 1 && j > 1 && from[i - 1] == to[j - 2] &&
                       from[i - 2] == to[j - 1];
      if (exchanged)
        row[j] = std::min(row[j], before[j - 2] + 1);
    }
  }
  return row[to.size()];
}

/// Whether `longer` is `shorter` with letters put in.
static bool isSubsequence(StringRef shorter, StringRef longer) {
  size_t at = 0;
  for (char c : longer)
    if (at < shorter.size() && shorter[at] == c)
      ++at;
  return at == shorter.size();
}

unsigned accel::nameDistance(StringRef said, StringRef legal) {
  // A file may have a key of a megabyte; its end makes no name nearer.
  std::string from = said.take_front(kLongest).lower(), to = legal.lower();
  unsigned edits = 2 * countEdits(from, to);
  bool isShortened = from.size() < to.size() ? isSubsequence(from, to)
                                             : isSubsequence(to, from);
  return isShortened ? edits / 2 : edits;
}

/// The letters of a name, or its digits.
static std::string pick(StringRef name, bool digits) {
  std::string result;
  for (char c : name)
    if (isDigit(c) == digits && isAlnum(c))
      result += toLower(c);
  return result;
}

bool accel::isNear(StringRef said, StringRef legal) {
  // The dashes of an argument are nobody's letters.
  said = said.take_front(kLongest).ltrim('-');
  legal = legal.ltrim('-');
  std::string from = pick(said, /*digits=*/true);
  std::string to = pick(legal, /*digits=*/true);
  constexpr size_t kShort = 4;
  bool isWord = all_of(said, isAlnum) && all_of(legal, isAlnum);
  if (isWord && !from.empty() && !to.empty() && from != to &&
      pick(said, /*digits=*/false).size() <= kShort &&
      pick(legal, /*digits=*/false).size() <= kShort)
    return false;
  return 3 * nameDistance(said, legal) <=
         2 * std::max(said.size(), legal.size());
}

StringRef accel::nearestName(StringRef said, ArrayRef<StringRef> legal) {
  auto lastPart = [](StringRef name) { return name.rsplit('.').second; };
  constexpr unsigned kFar = ~0u;
  auto near = [](StringRef a, StringRef b) {
    return isNear(a, b) ? nameDistance(a, b) : kFar;
  };
  auto distance = [&](StringRef name) {
    unsigned whole = near(said, name);
    if (!said.contains('.') && !name.contains('.'))
      return whole;
    StringRef a = said.contains('.') ? lastPart(said) : said;
    StringRef b = name.contains('.') ? lastPart(name) : name;
    unsigned last = near(a, b);
    return last == kFar ? whole : std::min(whole, last + 1);
  };
  SmallVector<unsigned> distances = map_to_vector(legal, distance);
  auto least = llvm::min_element(distances);
  if (least == distances.end() || *least == kFar)
    return "";
  return legal[least - distances.begin()];
}

std::string accel::suggestName(StringRef said, ArrayRef<StringRef> legal) {
  StringRef name = nearestName(said, legal);
  return name.empty() ? "" : ", the nearest is '" + name.str() + "'";
}

std::string accel::listNames(ArrayRef<StringRef> names, size_t most) {
  std::string text;
  for (StringRef name : names.take_front(most))
    text += (text.empty() ? "'" : ", '") + name.str() + "'";
  return names.size() > most ? text + ", ..." : text;
}
