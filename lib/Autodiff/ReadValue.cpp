// Reads numbers, words and lists of numbers.

#include "lib/Autodiff/ReadValue.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

#include <cmath>

using namespace llvm;
using namespace accel::autodiff;

using Numbers = std::vector<double>;

static Error expected(const Twine &what, StringRef key, StringRef value) {
  return createStringError(inconvertibleErrorCode(),
                           "expected " + what + " as '" + key + "', found '" +
                               value + "'");
}

static Expected<Numbers> readCounts(StringRef key, StringRef value) {
  SmallVector<StringRef> parts;
  value.split(parts, ',');
  Numbers numbers;
  for (StringRef part : parts) {
    int64_t number;
    if (part.getAsInteger(10, number) || number < 1 ||
        (!numbers.empty() && double(number) <= numbers.back()))
      return expected("ascending integers of at least 1 like 30,80", key,
                      value);
    numbers.push_back(double(number));
  }
  return numbers;
}

static Expected<Numbers> readBetas(StringRef key, StringRef value) {
  auto [first, second] = value.split(',');
  double beta1, beta2;
  if (first.getAsDouble(beta1) || second.getAsDouble(beta2) ||
      !(beta1 >= 0 && beta1 < 1) || !(beta2 >= 0 && beta2 < 1))
    return expected("two numbers in [0, 1) like 0.9,0.999", key, value);
  return Numbers{beta1, beta2};
}

static Expected<Numbers> readFlag(StringRef key, StringRef value) {
  if (value != "true" && value != "false")
    return expected("true or false", key, value);
  return Numbers{value == "true" ? 1. : 0.};
}

static Expected<Numbers> readWord(ArrayRef<StringLiteral> words, StringRef key,
                                  StringRef value) {
  const StringLiteral *found = find(words, value);
  if (found == words.end())
    return expected(join(words, " or "), key, value);
  return Numbers{double(found - words.begin())};
}

static Expected<Numbers> readCount(const ValueSpec &spec, StringRef key,
                                   StringRef value) {
  int64_t number;
  if (!value.getAsInteger(10, number) && number >= spec.least &&
      number <= spec.most)
    return Numbers{double(number)};
  if (spec.most == std::numeric_limits<int64_t>::max())
    return expected("an integer of at least " + Twine(spec.least), key, value);
  return expected("an integer from " + Twine(spec.least) + " to " +
                      Twine(spec.most),
                  key, value);
}

static Expected<Numbers> readNumber(ValueType type, StringRef key,
                                    StringRef value) {
  double number = 0;
  bool isNumber = !value.getAsDouble(number) && std::isfinite(number);
  bool fits = false;
  const char *what = "";
  switch (type) {
  case ValueType::NonNegative:
    fits = number >= 0;
    what = "a number of at least 0";
    break;
  case ValueType::Positive:
    fits = number > 0;
    what = "a number above 0";
    break;
  case ValueType::Rate:
    fits = number > 0;
    what = "a number above 0, or lr";
    break;
  case ValueType::Share:
    fits = number >= 0 && number <= 1;
    what = "a number from 0 to 1";
    break;
  case ValueType::Fraction:
    fits = number >= 0 && number < 1;
    what = "a number in [0, 1)";
    break;
  case ValueType::Signed:
    fits = true;
    what = "a number";
    break;
  case ValueType::Count:
  case ValueType::Flag:
  case ValueType::Word:
  case ValueType::Counts:
  case ValueType::Betas:
    llvm_unreachable("read elsewhere");
  }
  if (!isNumber || !fits)
    return expected(what, key, value);
  return Numbers{number};
}

Expected<Numbers> accel::autodiff::readValue(const ValueSpec &spec,
                                             StringRef key, StringRef value) {
  switch (spec.type) {
  case ValueType::Count:
    return readCount(spec, key, value);
  case ValueType::Counts:
    return readCounts(key, value);
  case ValueType::Betas:
    return readBetas(key, value);
  case ValueType::Flag:
    return readFlag(key, value);
  case ValueType::Word:
    return readWord(spec.words, key, value);
  case ValueType::Rate:
    if (value == "lr")
      return Numbers{0};
    break;
  default:
    break;
  }
  return readNumber(spec.type, key, value);
}
