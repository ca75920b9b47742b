// How what files and people call things is printed: a name may hold whatever
// bytes its author likes, and a terminal obeys some of them.

#include "Base/Text.h"
#include "accel-rt/Status.h"

#include <cstdint>
#include <cstdio>
#include <linux/limits.h>

namespace accel::rt {
namespace {

/// What of a text that is too long is shown.
constexpr size_t kShown = 200;

/// Length of the UTF-8 sequence at `at`, with its code point; 0: there is none.
size_t decode(const std::string &text, size_t at, uint32_t &point) {
  auto byte = [&](size_t i) {
    return at + i < text.size() ? static_cast<uint8_t>(text[at + i]) : 0u;
  };
  uint32_t first = byte(0);
  if (first < 0x80) {
    point = first;
    return 1;
  }
  size_t length = first >> 5 == 6    ? 2
                  : first >> 4 == 14 ? 3
                  : first >> 3 == 30 ? 4
                                     : 0;
  if (length == 0)
    return 0;
  point = first & (0x7fu >> length);
  for (size_t i = 1; i < length; ++i) {
    if (byte(i) >> 6 != 2)
      return 0;
    point = point << 6 | (byte(i) & 0x3f);
  }
  constexpr uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
  bool isSurrogate = point >> 11 == 0x1b;
  return point >= least[length] && point <= 0x10ffff && !isSurrogate ? length
                                                                     : 0;
}

/// Unicode's controls, separators of lines, and marks of direction.
bool isObeyed(uint32_t point) {
  return point < 0x20 || (point >= 0x7f && point <= 0x9f) || point == 0x61c ||
         (point >= 0x200b && point <= 0x200f) ||
         (point >= 0x2028 && point <= 0x202e) ||
         (point >= 0x2060 && point <= 0x206f) || point == 0xfeff ||
         (point >= 0xfff9 && point <= 0xfffb) || point >> 8 == 0xe00;
}

std::string escape(uint32_t point) {
  if (point == '\n')
    return "\\n";
  if (point == '\r')
    return "\\r";
  if (point == '\t')
    return "\\t";
  char text[16];
  std::snprintf(text, sizeof text, point < 0x80 ? "\\x%02x" : "\\u%04x", point);
  return text;
}

} // namespace

std::string printable(const std::string &text) {
  std::string shown;
  shown.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    uint32_t point = 0;
    size_t length = decode(text, at, point);
    if (length == 0) {
      char raw[8];
      std::snprintf(raw, sizeof raw, "\\x%02x",
                    static_cast<unsigned>(static_cast<uint8_t>(text[at])));
      shown += raw;
      ++at;
      continue;
    }
    if (isObeyed(point))
      shown += escape(point);
    else
      shown.append(text, at, length);
    at += length;
  }
  return shown;
}

bool isText(const std::string &text) {
  uint32_t point = 0;
  for (size_t at = 0, length; at < text.size(); at += length) {
    length = decode(text, at, point);
    if (length == 0 || point == 0)
      return false;
  }
  return true;
}

std::string inQuotes(const std::string &text) {
  // Paths are for people to find files by: they are never cut.
  if (text.size() <= PATH_MAX)
    return "'" + printable(text) + "'";
  size_t end = kShown;
  while (end > 0 && static_cast<uint8_t>(text[end]) >> 6 == 2)
    --end;
  return "'" + printable(text.substr(0, end)) + "…' (" +
         std::to_string(text.size()) + " bytes)";
}

} // namespace accel::rt
