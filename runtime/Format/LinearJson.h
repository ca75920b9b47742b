// JSON whose objects keep their keys in order and take a new one without
// looking through the old: a header with 100,000 keys costs 100,000 steps. A
// key that stands twice is there twice; a reader that counts the keys it knows
// sees it.

#ifndef ACCEL_RUNTIME_FORMAT_LINEARJSON_H
#define ACCEL_RUNTIME_FORMAT_LINEARJSON_H

#include <nlohmann/json.hpp>

namespace accel::rt::format {

/// An object's members. Finding one is linear: only small objects are asked.
template <class Key, class T, class Less, class Allocator>
struct AppendedMap : nlohmann::ordered_map<Key, T, Less, Allocator> {
  using Base = nlohmann::ordered_map<Key, T, Less, Allocator>;
  using Base::Base;
  template <class Name>
  std::pair<typename Base::iterator, bool> emplace(Name &&name, T &&value) {
    this->emplace_back(std::forward<Name>(name), std::move(value));
    return {std::prev(this->end()), true};
  }
  template <class Name> T &operator[](Name &&name) {
    return emplace(std::forward<Name>(name), T{}).first->second;
  }
};

using LinearJson = nlohmann::basic_json<AppendedMap>;

} // namespace accel::rt::format

#endif // ACCEL_RUNTIME_FORMAT_LINEARJSON_H
