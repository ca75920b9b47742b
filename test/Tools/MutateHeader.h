// Makes one field of an executable's header say something else. A field's name
// is drawn first, then one of its places, then what becomes of it: rare fields
// get their turn.

#ifndef ACCEL_TEST_TOOLS_MUTATEHEADER_H
#define ACCEL_TEST_TOOLS_MUTATEHEADER_H

#include <map>
#include <nlohmann/json.hpp>
#include <random>

namespace accel::test {

class HeaderMutator {
public:
  using Json = nlohmann::ordered_json;
  explicit HeaderMutator(uint64_t seed) : generator(seed) {}

  /// Changes a field of `json`; `told`, if not null, gets which and how.
  void change(Json &json, std::string *told = nullptr) {
    std::map<std::string, std::vector<Json *>> places;
    collect("", json, places);
    auto name = places.begin();
    std::advance(name, static_cast<int64_t>(draw(places.size())));
    Json &place = *name->second[draw(name->second.size())];
    std::string before = told ? text(place) : "";
    mutate(place, name->second);
    if (told)
      *told = name->first + ": " + before + " -> " + text(place);
  }

private:
  size_t draw(size_t below) { return generator() % below; }

  /// Every value under `json`, by its path without indices.
  static void collect(const std::string &path, Json &json,
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
    // Wraps: what is there already may be an edge.
    const auto bits = static_cast<uint64_t>(old);
    const uint64_t values[] = {bits + 1,
                               bits - 1,
                               0,
                               1,
                               ~uint64_t(0),
                               bits * 2,
                               static_cast<uint64_t>(old / 2),
                               bits + 4,
                               bits + 64,
                               255,
                               2147483647,
                               uint64_t(1) << 40,
                               uint64_t(1) << 63,
                               7};
    return static_cast<int64_t>(values[draw(std::size(values))]);
  }

  /// What becomes of a value; `others` are those of the same name.
  void mutate(Json &json, const std::vector<Json *> &others) {
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
  }

  static std::string text(const Json &json) {
    return json.dump(-1, ' ', false, Json::error_handler_t::replace)
        .substr(0, 80);
  }

  std::mt19937_64 generator;
};

} // namespace accel::test

#endif // ACCEL_TEST_TOOLS_MUTATEHEADER_H
