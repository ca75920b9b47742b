// The header, written and read with nlohmann-json; the reader does not throw.

#include "accel-rt/SafetensorsFormat.h"

#include "Format/Layout.h"
#include "Format/LinearJson.h"
#include "accel-rt/TensorFileFormat.h"

#include <algorithm>
#include <set>

namespace accel::rt {
namespace {

using SafetensorsJson = format::LinearJson;

/// As the format's own reader: longer headers are refused.
constexpr uint64_t kMaxSafetensorsHeader = 100000000;

/// Fills an entry from its JSON object; false if it is not what the format
/// says.
bool readEntry(const SafetensorsJson &json, uint64_t payload,
               SafetensorsEntry &entry) {
  if (!json.contains("dtype") || !json.contains("shape") ||
      !json.contains("data_offsets"))
    return false;
  const SafetensorsJson &dtype = json["dtype"], &shape = json["shape"],
                        &offsets = json["data_offsets"];
  if (!dtype.is_string() || !shape.is_array() || !offsets.is_array() ||
      offsets.size() != 2 || !offsets[0].is_number_unsigned() ||
      !offsets[1].is_number_unsigned())
    return false;
  std::optional<DType> type = dtypeFromSafetensors(dtype.get<std::string>());
  if (!type)
    return false;
  entry.dtype = *type;
  for (const SafetensorsJson &dim : shape) {
    if (!dim.is_number_unsigned() || dim.get<uint64_t>() > uint64_t(1) << 56)
      return false;
    entry.shape.push_back(dim.get<int64_t>());
  }
  std::optional<uint64_t> bytes = tensorBytes(*type, entry.shape);
  if (!bytes)
    return false;
  uint64_t end = offsets[1].get<uint64_t>();
  entry.begin = offsets[0].get<uint64_t>();
  entry.bytes = *bytes;
  return entry.begin <= end && end <= payload &&
         end - entry.begin == entry.bytes;
}

/// Two entries that share bytes; null if none do.
std::pair<const SafetensorsEntry *, const SafetensorsEntry *>
findOverlap(const std::vector<SafetensorsEntry> &entries) {
  std::vector<const SafetensorsEntry *> sorted;
  for (const SafetensorsEntry &entry : entries)
    if (entry.bytes > 0)
      sorted.push_back(&entry);
  std::sort(sorted.begin(), sorted.end(),
            [](const auto *a, const auto *b) { return a->begin < b->begin; });
  for (size_t i = 1; i < sorted.size(); ++i)
    if (sorted[i]->begin < sorted[i - 1]->begin + sorted[i - 1]->bytes)
      return {sorted[i - 1], sorted[i]};
  return {};
}

} // namespace

std::string safetensorsHeader(std::vector<SafetensorsEntry> &entries) {
  std::sort(entries.begin(), entries.end(), [](const auto &a, const auto &b) {
    int64_t bytesA = dtypeBytes(a.dtype), bytesB = dtypeBytes(b.dtype);
    return bytesA != bytesB ? bytesA > bytesB : a.name < b.name;
  });
  SafetensorsJson json = SafetensorsJson::object();
  json["__metadata__"] = {{"format", "pt"}};
  uint64_t offset = 0;
  for (SafetensorsEntry &entry : entries) {
    entry.begin = offset;
    entry.bytes = static_cast<uint64_t>(numElements(entry.shape)) *
                  static_cast<uint64_t>(dtypeBytes(entry.dtype));
    offset += entry.bytes;
    json[entry.name] = {{"dtype", dtypeSafetensorsName(entry.dtype)},
                        {"shape", entry.shape},
                        {"data_offsets", {entry.begin, offset}}};
  }
  std::string text =
      json.dump(-1, ' ', false, SafetensorsJson::error_handler_t::replace);
  text.append((8 - text.size() % 8) % 8, ' ');
  uint64_t length = text.size();
  return std::string(reinterpret_cast<const char *>(&length), 8) + text;
}

Status checkSafetensorsLength(uint64_t length, uint64_t fileBytes) {
  if (fileBytes < 8 || length < 2 || length > kMaxSafetensorsHeader ||
      length > fileBytes - 8)
    return Status::error("expected the header of a safetensors file");
  return Status();
}

Status readSafetensorsHeader(std::string_view text, uint64_t payload,
                             std::vector<SafetensorsEntry> &entries) {
  SafetensorsJson json =
      SafetensorsJson::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object())
    return Status::error("expected the JSON header of a safetensors file");
  uint64_t end = 0;
  std::set<std::string> names;
  for (auto &[name, value] : json.items()) {
    if (!names.insert(name).second || name.find('\0') != std::string::npos)
      return Status::error("expected each name once, and without NUL, found " +
                           inQuotes(name));
    if (name == "__metadata__")
      continue;
    SafetensorsEntry entry;
    entry.name = name;
    if (!readEntry(value, payload, entry))
      return Status::error("expected a type, a shape and a range of the file "
                           "for " +
                           inQuotes(name));
    end = std::max(end, entry.begin + entry.bytes);
    entries.push_back(std::move(entry));
  }
  if (const auto [one, other] = findOverlap(entries); one)
    return Status::error("expected each tensor in a range of its own, found " +
                         inQuotes(one->name) + " and " + inQuotes(other->name) +
                         " in the same bytes");
  if (end != payload) {
    uint64_t start = 8 + text.size();
    return Status::error("expected " + std::to_string(start + end) +
                         " bytes, as its header says, found " +
                         std::to_string(start + payload));
  }
  return Status();
}

} // namespace accel::rt
