// Reading blends, and going through them.

#include "Data/Blend.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <sstream>
#include <unistd.h>

namespace accel::rt {
namespace {

bool readNumber(const std::string &text, double &number) {
  char *end = nullptr;
  number = std::strtod(text.c_str(), &end);
  return end != text.c_str() && *end == '\0';
}

} // namespace

Status readBlend(const std::string &text, std::vector<BlendPart> &parts) {
  parts.clear();
  std::istringstream words(text);
  std::string word;
  double weight = 0, sum = 0;
  bool isBlend = (words >> word) && readNumber(word, weight) &&
                 access(text.c_str(), F_OK) != 0;
  if (!isBlend)
    return Status();
  do {
    bool isWeight =
        readNumber(word, weight) && weight > 0 && std::isfinite(weight);
    std::string path;
    if (!isWeight || !(words >> path))
      return Status::error("expected WEIGHT PATH WEIGHT PATH, with weights "
                           "above 0, as a blend of data, found " +
                           (isWeight ? "no path behind " + inQuotes(word)
                                     : inQuotes(word) + " as a weight") +
                           " in " + inQuotes(text));
    parts.push_back({weight, path});
    sum += weight;
  } while (words >> word);
  for (BlendPart &part : parts)
    part.weight /= sum;
  return Status();
}

size_t BlendOrder::choose() const {
  double i = std::max(static_cast<double>(next), 1.0), most = 0;
  size_t chosen = 0;
  for (size_t part = 0; part < weights.size(); ++part) {
    double lacks = weights[part] * i - static_cast<double>(given[part]);
    if (part == 0 || lacks > most) {
      most = lacks;
      chosen = part;
    }
  }
  return chosen;
}

BlendOrder::Place BlendOrder::placeOf(uint64_t i) {
  if (i < next) {
    std::fill(given.begin(), given.end(), 0);
    next = 0;
  }
  for (; next < i; ++next)
    ++given[choose()];
  size_t part = choose();
  ++next;
  return {part, given[part]++};
}

} // namespace accel::rt
