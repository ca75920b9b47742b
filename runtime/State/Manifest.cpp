// The manifest as text, and back.

#include "State/Manifest.h"
#include "Base/SystemError.h"

#include "Format/LinearJson.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <set>

namespace accel::rt {
namespace {

using Json = format::LinearJson;

constexpr int kNumberRoom = 20;
/// What is said of evaluations: four numbers and their names.
constexpr size_t kBestRoom = 138;
constexpr const char *kFormat = "accel-checkpoint";
/// Before the text's own hash, which is followed by `"}` and a line break.
constexpr const char *kSeal = ",\n \"hash\": \"";
constexpr size_t kMaxManifest = size_t(1) << 30;

std::string quoted(const std::string &text) {
  return Json(text).dump(-1, ' ', false, Json::error_handler_t::replace);
}

/// 16 digits.
std::string hexOf(uint64_t value) {
  char text[20];
  std::snprintf(text, sizeof text, "%016llx",
                static_cast<unsigned long long>(value));
  return text;
}

bool parseHex(const Json &json, uint64_t &value) {
  if (!json.is_string())
    return false;
  std::string text = json.get<std::string>();
  if (text.size() != 16 ||
      text.find_first_not_of("0123456789abcdef") != std::string::npos)
    return false;
  value = std::strtoull(text.c_str(), nullptr, 16);
  return true;
}

/// Reads a field that must be a whole number, of 64 bits with its sign.
bool getNumber(const Json &json, const char *key, int64_t &value) {
  if (!json.contains(key) || !json[key].is_number_integer())
    return false;
  value = json[key].get<int64_t>();
  return !json[key].is_number_unsigned() || value >= 0;
}

bool getText(const Json &json, const char *key, std::string &value) {
  if (!json.contains(key) || !json[key].is_string())
    return false;
  value = json[key].get<std::string>();
  return true;
}

/// Reads a field that is a list of texts, or is not there.
bool getTexts(const Json &json, const char *key,
              std::vector<std::string> &values) {
  if (!json.contains(key))
    return true;
  if (!json[key].is_array())
    return false;
  for (const Json &value : json[key]) {
    if (!value.is_string())
      return false;
    values.push_back(value.get<std::string>());
  }
  return true;
}

bool readEvaluations(const Json &json, BestEvaluation &best) {
  std::string metric;
  if (!getText(json, "metric", metric) || metric != kEvaluationMetric ||
      !json.contains("best") || !getNumber(json, "best_step", best.step) ||
      !getNumber(json, "without_gain", best.withoutGain) ||
      !getNumber(json, "count", best.count) || best.step < 0 ||
      best.withoutGain < 0 || best.count < best.withoutGain ||
      json["best"].is_number() != (best.step > 0))
    return false;
  if (best.step)
    best.value = json["best"].get<double>();
  return best.step || json["best"].is_null();
}

bool readState(const std::string &name, const Json &json,
               Manifest::State &state) {
  std::string file;
  state.name = name;
  if (!getText(json, "file", file) || !getText(json, "role", state.role) ||
      !getTexts(json, "aliases", state.aliases) || !json.contains("hash") ||
      !parseHex(json["hash"], state.hash))
    return false;
  auto found =
      std::find(std::begin(kCheckpointFiles), std::end(kCheckpointFiles), file);
  state.file = static_cast<int>(found - std::begin(kCheckpointFiles));
  return state.file < kNumCheckpointFiles;
}

bool readFields(const Json &json, int64_t version, Manifest &manifest) {
  if (!getNumber(json, "step", manifest.step) || manifest.step < 0 ||
      manifest.step > kMaxSteps || !getNumber(json, "seed", manifest.seed) ||
      !json.contains("files") || !json.contains("states") ||
      !json["states"].is_object())
    return false;
  if (json.contains("data")) {
    const Json &data = json["data"];
    DataCursor &cursor = manifest.data.emplace();
    if (!getNumber(data, "samples", cursor.samples) ||
        !getNumber(data, "length", cursor.length) ||
        !getNumber(data, "batch", cursor.batch) ||
        !getNumber(data, "seed", cursor.seed))
      return false;
    std::string order;
    if (version > 2 &&
        (!getText(data, "order", order) ||
         (order != "shuffled" && order != "file") ||
         !getNumber(data, "first_step", cursor.firstStep) ||
         cursor.firstStep < 0 || cursor.firstStep > manifest.step))
      return false;
    cursor.isShuffled = order != "file";
    std::string last = nameOf(SampleOrder::Next);
    if (version > 3 && !getText(data, "last_batch", last))
      return false;
    for (SampleOrder::Last each :
         {SampleOrder::Next, SampleOrder::Drop, SampleOrder::Keep})
      if (last == nameOf(each))
        cursor.last = each;
    if (last != nameOf(cursor.last))
      return false;
    if (version > 1 &&
        (!getText(data, "file", cursor.file) || !data.contains("hash") ||
         !parseHex(data["hash"], cursor.hash.emplace())))
      return false;
  }
  if (json.contains("evaluations") &&
      (!readEvaluations(json["evaluations"], manifest.evaluations.emplace()) ||
       manifest.evaluations->step > manifest.step))
    return false;
  for (int i = 0; i < kNumCheckpointFiles; ++i) {
    const Json &files = json["files"];
    if (!files.contains(kCheckpointFiles[i]) ||
        !parseHex(files[kCheckpointFiles[i]], manifest.headerHashes[i]))
      return false;
  }
  std::set<std::string> names;
  auto isNew = [&](const std::string &name) {
    return names.insert(name).second && name.find('\0') == std::string::npos;
  };
  for (const auto &[name, value] : json["states"].items()) {
    Manifest::State &state = manifest.states.emplace_back();
    if (!isNew(name) || !readState(name, value, state) ||
        !std::all_of(state.aliases.begin(), state.aliases.end(), isNew))
      return false;
  }
  return true;
}

} // namespace

void ManifestText::prepare(const Manifest &manifest) {
  hashesAt.clear();
  // Whitespace may stand before a number: its room has a fixed width.
  std::string room(kNumberRoom, ' ');
  content = std::string("{\"format\": ") + quoted(kFormat) +
            ",\n \"version\": " + std::to_string(kCheckpointVersion) +
            ",\n \"step\": ";
  stepAt = content.size();
  content += room + ",\n \"seed\": " + std::to_string(manifest.seed);
  batch = 0;
  if (const auto &data = manifest.data) {
    batch = data->batch;
    firstStep = data->firstStep;
    content += ",\n \"data\": {\"samples\": " + std::to_string(data->samples) +
               ", \"length\": " + std::to_string(data->length) +
               ", \"batch\": " + std::to_string(data->batch) +
               ", \"seed\": " + std::to_string(data->seed) + ", \"order\": \"" +
               (data->isShuffled ? "shuffled" : "file") +
               "\", \"last_batch\": \"" + nameOf(data->last) +
               "\", \"first_step\": " + std::to_string(firstStep) +
               ", \"file\": " + quoted(data->file) + ", \"hash\": \"" +
               hexOf(*data->hash) + "\", \"read\": ";
    readAt = content.size();
    content += room + "}";
  }
  if (manifest.evaluations) {
    content += std::string(",\n \"evaluations\": {\"metric\": \"") +
               kEvaluationMetric + "\", ";
    bestAt = content.size();
    content += std::string(kBestRoom, ' ') + "}";
  }
  content += ",\n \"mesh\": {";
  for (const Axis &axis : manifest.mesh)
    content += (content.back() == '{' ? "" : ", ") + quoted(axis.name) + ": " +
               std::to_string(axis.size);
  content +=
      "},\n \"micro_batches\": " + std::to_string(manifest.microBatches) +
      ",\n \"files\": {";
  for (int i = 0; i < kNumCheckpointFiles; ++i)
    content += (i ? ",\n  " : "\n  ") + quoted(kCheckpointFiles[i]) + ": \"" +
               hexOf(manifest.headerHashes[i]) + "\"";
  content += "},\n \"states\": {";
  const char *separator = "\n  ";
  for (const Manifest::State &state : manifest.states) {
    content += separator + quoted(state.name) +
               ": {\"file\": " + quoted(kCheckpointFiles[state.file]) +
               ", \"role\": " + quoted(state.role);
    for (const std::string &alias : state.aliases)
      content += (&alias == &state.aliases[0] ? ", \"aliases\": [" : ", ") +
                 quoted(alias);
    content +=
        (state.aliases.empty() ? "" : "]") + std::string(", \"hash\": \"");
    hashesAt.push_back(content.size());
    content += std::string(16, '0') + "\"}";
    separator = ",\n  ";
  }
  content += "}" + std::string(kSeal);
  sealAt = content.size();
  content += std::string(16, '0') + "\"}\n";
}

/// Writes digits without allocating.
static void put(std::string &text, size_t at, const char *format, int64_t n) {
  char digits[32];
  int length =
      std::snprintf(digits, sizeof digits, format, static_cast<long long>(n));
  text.replace(at, static_cast<size_t>(length), digits,
               static_cast<size_t>(length));
}

void ManifestText::setStep(int64_t step) {
  put(content, stepAt, "%20lld", step);
  if (batch)
    put(content, readAt, "%20lld", (step - firstStep) * batch);
}

void ManifestText::setEvaluations(const BestEvaluation &best) {
  char text[kBestRoom + 1], value[32] = "null";
  if (best.step)
    std::snprintf(value, sizeof value, "%.17g", best.value);
  std::snprintf(text, sizeof text,
                "\"best\": %26s, \"best_step\": %20lld, \"without_gain\": "
                "%20lld, \"count\": %20lld",
                value, static_cast<long long>(best.step),
                static_cast<long long>(best.withoutGain),
                static_cast<long long>(best.count));
  content.replace(bestAt, kBestRoom, text, kBestRoom);
}

void ManifestText::setHash(size_t state, uint64_t hash) {
  put(content, hashesAt[state], "%016llx", static_cast<int64_t>(hash));
}

void ManifestText::seal() {
  put(content, sealAt, "%016llx",
      static_cast<int64_t>(hashBytes(content.data(), sealAt)));
}

Status readManifest(const std::string &folder, Manifest &manifest) {
  std::string path = folder + "/" + kManifestFile;
  FileHandle file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file)
    return Status::error("cannot open the checkpoint " + inQuotes(path) + ": " +
                         systemError(errno));
  auto refused = [&](const char *why) {
    return Status::error("cannot use the checkpoint " + inQuotes(path) + ": " +
                         why);
  };
  uint64_t size;
  ACCEL_RT_RETURN_IF_ERROR(sizeOfFile(file.get(), path, size));
  if (size > kMaxManifest)
    return refused("it is damaged: it is too long");
  std::string text(size, '\0');
  ACCEL_RT_RETURN_IF_ERROR(
      readRange(file.get(), path, 0, text.data(), text.size()));
  size_t seal = text.rfind(kSeal);
  uint64_t hash;
  size_t hashAt = seal + std::strlen(kSeal);
  if (seal == std::string::npos || text.size() != hashAt + 19 ||
      !parseHex(Json(text.substr(hashAt, 16)), hash) ||
      hash != hashBytes(text.data(), hashAt))
    return refused("it is damaged: the text does not match its hash");
  Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  std::string format;
  int64_t version = 0;
  if (!getText(json, "format", format) || format != kFormat ||
      !getNumber(json, "version", version))
    return refused("expected the manifest of a checkpoint");
  if (version < 1 || version > kCheckpointVersion)
    return Status::error("expected version 1 to " +
                         std::to_string(kCheckpointVersion) +
                         " of the checkpoint " + inQuotes(path) + ", found " +
                         std::to_string(version));
  manifest.version = version;
  if (!readFields(json, version, manifest))
    return refused("expected a step from 0 on, a seed, and the files and "
                   "hashes of states, each once");
  return Status();
}

} // namespace accel::rt
