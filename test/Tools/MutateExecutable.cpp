// accel-mutate-executable FILE OUT SEED: writes a copy of an executable in
// which one field of its header says something else, with a checksum that fits,
// and prints which. A field's name is drawn first, then one of its places, then
// what becomes of it: rare fields get their turn.

#include "accel-rt/PlanFormat.h"

#include <cstdio>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>

using Json = nlohmann::ordered_json;

namespace {

std::mt19937_64 generator;
size_t draw(size_t below) { return generator() % below; }

/// Every value under `json`, by its path without indices.
void collect(const std::string &path, Json &json,
             std::map<std::string, std::vector<Json *>> &places) {
  places[path].push_back(&json);
  if (json.is_object())
    for (auto &[key, value] : json.items())
      collect(path + "." + key, value, places);
  else if (json.is_array())
    for (Json &value : json)
      collect(path + "[]", value, places);
}

int64_t drawInteger(int64_t old) {
  const int64_t values[] = {old + 1,   old - 1, 0,          1,
                            -1,        old * 2, old / 2,    old + 4,
                            old + 64,  255,     2147483647, int64_t(1) << 40,
                            INT64_MIN, 7};
  return values[draw(std::size(values))];
}

/// What becomes of a value; `others` are those of the same name.
std::string mutate(Json &json, const std::vector<Json *> &others) {
  std::string before = json.dump();
  Json other = *others[draw(others.size())];
  if (draw(3) == 0 && other != json) {
    json = other;
  } else if (json.is_boolean()) {
    json = !json.get<bool>();
  } else if (json.is_number_integer()) {
    json = json.is_number_unsigned() && json.get<uint64_t>() > INT64_MAX
               ? Json(json.get<uint64_t>() ^ 1)
               : Json(drawInteger(json.get<int64_t>()));
  } else if (json.is_number()) {
    json = json.get<double>() * 2;
  } else if (json.is_string()) {
    std::string text = json.get<std::string>();
    switch (draw(4)) {
    case 0:
      json = text + std::string(1, '\0');
      break;
    case 1:
      json = text + "x";
      break;
    case 2:
      json = "";
      break;
    default:
      json = "compute";
    }
  } else if (json.is_array() && !json.empty()) {
    size_t at = draw(json.size()), to = draw(json.size());
    switch (draw(3)) {
    case 0:
      json.erase(at);
      break;
    case 1:
      json.push_back(Json(json[at]));
      break;
    default:
      std::swap(json[at], json[to]);
    }
  } else if (json.is_object() && !json.empty()) {
    auto at = json.begin();
    std::advance(at, static_cast<int64_t>(draw(json.size())));
    json.erase(at);
  }
  return before.substr(0, 80) + " -> " + json.dump().substr(0, 80);
}

} // namespace

int main(int argc, char **argv) {
  if (argc != 4) {
    std::fprintf(stderr, "usage: accel-mutate-executable FILE OUT SEED\n");
    return 2;
  }
  std::ifstream stream(argv[1], std::ios::binary);
  std::string text(std::istreambuf_iterator<char>(stream), {});
  generator.seed(std::strtoull(argv[3], nullptr, 10));
  uint64_t length = 0;
  std::memcpy(&length, text.data(), 8);
  auto align = [](uint64_t n) { return (n + 4095) / 4096 * 4096; };
  std::string payload = text.substr(align(length + 16));
  Json json = Json::parse(text.substr(8, length));
  std::map<std::string, std::vector<Json *>> places;
  collect("", json["accx"], places);
  auto name = places.begin();
  std::advance(name, static_cast<int64_t>(draw(places.size())));
  std::string what =
      mutate(*name->second[draw(name->second.size())], name->second);
  std::printf("%s: %s\n", name->first.c_str(), what.c_str());
  std::string header = json.dump();
  uint64_t size = header.size(),
           hash = accel::rt::hashBytes(header.data(), size);
  std::string result(reinterpret_cast<char *>(&size), 8);
  result += header;
  result.append(reinterpret_cast<char *>(&hash), 8);
  result.resize(align(result.size()));
  std::ofstream(argv[2], std::ios::binary) << result << payload;
  return 0;
}
