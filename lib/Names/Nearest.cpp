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

StringRef accel::nearestName(StringRef said, ArrayRef<StringRef> legal) {
  auto lastPart = [](StringRef name) { return name.rsplit('.').second; };
  auto distance = [&](StringRef name) {
    unsigned whole = nameDistance(said, name);
    if (!said.contains('.') && !name.contains('.'))
      return whole;
    StringRef a = said.contains('.') ? lastPart(said) : said;
    StringRef b = name.contains('.') ? lastPart(name) : name;
    return std::min(whole, nameDistance(a, b) + 1);
  };
  SmallVector<unsigned> distances = map_to_vector(legal, distance);
  return legal[llvm::min_element(distances) - distances.begin()];
}

std::string accel::listNames(ArrayRef<StringRef> names, size_t most) {
  std::string text;
  for (StringRef name : names.take_front(most))
    text += (text.empty() ? "'" : ", '") + name.str() + "'";
  return names.size() > most ? text + ", ..." : text;
}
