// Walks the descriptions of Describe.h and CommandFormat.h in both directions.
// The reader never throws: parsing is asked not to, and every access checks the
// type first.

#include "Format/Json.h"

#include "Format/Describe.h"
#include "Format/LinearJson.h"

#include <string_view>
#include <unordered_set>

namespace accel::rt::format {
namespace {

using Json = LinearJson;

bool hasNul(const std::string &text) {
  return text.find('\0') != std::string::npos;
}

/// Fields at their default are left out: headers stay a third of the size.
class JsonWriter {
public:
  template <class T> void field(const char *name, T &value) {
    Json json = write(value);
    if (!isDefault(json))
      object[name] = std::move(json);
  }
  template <class T> void view(const char *name, T &views, Access) {
    field(name, views);
  }
  void code(const char *name, std::string &symbol) { field(name, symbol); }
  void origins(const char *name, std::vector<std::string> &inputs,
               const std::vector<View> &) {
    field(name, inputs);
  }
  template <class... Ts>
  void alternative(const char *name, std::variant<Ts...> &value) {
    object[name] = kCommandKinds[value.index()];
    std::visit([&](auto &held) { describe(*this, held); }, value);
  }
  template <class T> static Json write(T &value) {
    JsonWriter writer;
    describe(writer, value);
    return std::move(writer.object);
  }
  static Json write(std::string &value) { return value; }
  static Json write(int64_t &value) { return value; }
  static Json write(uint64_t &value) { return value; }
  static Json write(double &value) { return value; }
  static Json write(bool &value) { return value; }
  static Json write(DType &value) { return dtypeName(value); }
  template <class T> static Json write(std::vector<T> &values) {
    Json array = Json::array();
    for (T &value : values)
      array.push_back(write(value));
    return array;
  }
  template <class T> static Json write(std::optional<T> &value) {
    return value ? write(*value) : Json();
  }
  static Json write(Form &form) {
    Json object = Json::object();
    for (auto &[name, value] : form)
      std::visit([&, &key = name](auto &held) { object[key] = write(held); },
                 value);
    return object;
  }

private:
  static bool isDefault(const Json &json) {
    return json.is_null() || (json.is_array() && json.empty()) ||
           (json.is_string() && json.get_ref<const std::string &>().empty()) ||
           (json.is_boolean() && !json.get<bool>());
  }
  Json object = Json::object();
};

/// Reads one object. Scalars other than strings and booleans must be there;
/// strings, booleans, lists and optionals may be left out.
class JsonReader {
public:
  JsonReader(const Json &object, Status &status)
      : object(object), status(status) {
    if (!object.is_object())
      fail("expected an object");
  }

  template <class T> void field(const char *name, T &value) {
    if (!status.ok())
      return;
    auto found = object.find(name);
    if (found == object.end()) {
      if (!mayBeAbsent(value))
        fail(std::string("expected a field ") + inQuotes(name) +
             ", found none");
      return;
    }
    ++known;
    read(*found, value);
    if (!status.ok() && !named) {
      status = Status::error(status.message() + " in field " + inQuotes(name));
      named = true;
    }
  }
  template <class T> void view(const char *name, T &views, Access) {
    field(name, views);
  }
  void code(const char *name, std::string &symbol) { field(name, symbol); }
  void origins(const char *name, std::vector<std::string> &inputs,
               const std::vector<View> &) {
    field(name, inputs);
  }
  template <class... Ts>
  void alternative(const char *name, std::variant<Ts...> &value) {
    std::string kind;
    field(name, kind);
    if (!status.ok())
      return;
    if (!choose(kind, value, std::index_sequence_for<Ts...>()))
      fail("found a command of unknown kind " + inQuotes(kind));
  }
  /// Refuses fields that no description named, and one that stands twice.
  void finish() {
    if (!status.ok() || known == object.size())
      return;
    std::unordered_set<std::string> names;
    for (auto &[name, value] : object.items())
      if (!names.insert(name).second)
        return fail("found the field " + inQuotes(name) + " twice");
    fail("found a field that this version does not know");
  }

private:
  void fail(std::string message) {
    if (status.ok())
      status = Status::error(std::move(message));
  }
  template <class... Ts, size_t... Is>
  bool choose(const std::string &kind, std::variant<Ts...> &value,
              std::index_sequence<Is...>) {
    return ((kind == kCommandKinds[Is] &&
             (describe(*this, value.template emplace<Is>()), true)) ||
            ...);
  }

  template <class T> static bool mayBeAbsent(const T &) { return false; }
  static bool mayBeAbsent(const std::string &) { return true; }
  static bool mayBeAbsent(const bool &) { return true; }
  static bool mayBeAbsent(const Form &) { return true; }
  template <class T> static bool mayBeAbsent(const std::vector<T> &) {
    return true;
  }
  template <class T> static bool mayBeAbsent(const std::optional<T> &) {
    return true;
  }

  template <class T> void read(const Json &json, T &value) {
    JsonReader reader(json, status);
    if (status.ok())
      describe(reader, value);
    reader.finish();
    named = named || reader.named;
  }
  void read(const Json &json, std::string &value) {
    if (!json.is_string())
      return fail("expected a string");
    value = json.get_ref<const std::string &>();
    // Files, symbols and messages would end there, and comparisons would not.
    if (hasNul(value))
      fail("expected text without NUL");
  }
  void read(const Json &json, bool &value) {
    if (!json.is_boolean())
      return fail("expected a boolean");
    value = json.get<bool>();
  }
  void read(const Json &json, int64_t &value) {
    if (!json.is_number_integer() ||
        (json.is_number_unsigned() && json.get<uint64_t>() > INT64_MAX))
      return fail("expected an integer");
    value = json.get<int64_t>();
  }
  void read(const Json &json, uint64_t &value) {
    if (!json.is_number_unsigned())
      return fail("expected a non-negative integer");
    value = json.get<uint64_t>();
  }
  void read(const Json &json, double &value) {
    if (!json.is_number())
      return fail("expected a number");
    value = json.get<double>();
  }
  void read(const Json &json, DType &value) {
    std::string name;
    read(json, name);
    std::optional<DType> dtype = dtypeFromName(name);
    if (!dtype)
      return fail("expected an element type, found " + inQuotes(name));
    value = *dtype;
  }
  template <class T> void read(const Json &json, std::vector<T> &values) {
    if (!json.is_array())
      return fail("expected a list");
    values.reserve(json.size());
    for (const Json &element : json) {
      T value{};
      read(element, value);
      if (!status.ok())
        return;
      values.push_back(std::move(value));
    }
  }
  template <class T> void read(const Json &json, std::optional<T> &value) {
    read(json, value.emplace());
  }
  void read(const Json &json, Form &form) {
    if (!json.is_object())
      return fail("expected an object");
    for (auto &[name, element] : json.items()) {
      auto [entry, isNew] = form.try_emplace(name);
      if (!isNew || hasNul(name))
        return fail("expected each key of a form once, and without NUL");
      FormValue &value = entry->second;
      if (element.is_number_integer())
        read(element, value.emplace<int64_t>());
      else if (element.is_number())
        read(element, value.emplace<double>());
      else if (element.is_string())
        read(element, value.emplace<std::string>());
      else
        read(element, value.emplace<std::vector<int64_t>>());
    }
  }

  const Json &object;
  Status &status;
  size_t known = 0;
  bool named = false;
};

Json writeSection(const Section &section) {
  return {{"dtype", dtypeSafetensorsName(section.dtype)},
          {"shape", section.shape},
          {"data_offsets", {section.offset, section.offset + section.bytes}},
          {"hash", section.hash}};
}

constexpr const char *kSectionKey = "section:";

/// What a section's entry looks like to JsonReader.
struct SectionEntry {
  std::string dtype;
  std::vector<int64_t> shape;
  std::vector<uint64_t> offsets;
  uint64_t hash = 0;
};
template <class IO> void describe(IO &io, SectionEntry &entry) {
  io.field("dtype", entry.dtype);
  io.field("shape", entry.shape);
  io.field("data_offsets", entry.offsets);
  io.field("hash", entry.hash);
}

Status readSectionEntry(const std::string &key, const Json &json,
                        Section &section) {
  section.name = key.substr(std::string(kSectionKey).size());
  if (hasNul(section.name))
    return Status::error("expected the name of a section without NUL");
  Status status;
  SectionEntry entry;
  JsonReader reader(json, status);
  if (status.ok())
    describe(reader, entry);
  reader.finish();
  std::optional<DType> dtype = dtypeOfSection(entry.dtype);
  if (status.ok() && (!dtype || entry.offsets.size() != 2 ||
                      entry.offsets[0] > entry.offsets[1]))
    status = Status::error("expected an element type and two offsets");
  if (!status.ok())
    return Status::error(status.message() + " in section " +
                         inQuotes(section.name));
  section.dtype = *dtype;
  section.shape = std::move(entry.shape);
  section.offset = entry.offsets[0];
  section.bytes = entry.offsets[1] - entry.offsets[0];
  section.hash = entry.hash;
  return Status();
}

} // namespace

std::string toJson(Executable &executable) {
  Json json = Json::object();
  json["__metadata__"] = {{"format", "accx"},
                          {"version", std::to_string(kFormatVersion)}};
  for (const Section &section : executable.sections)
    json[kSectionKey + section.name] = writeSection(section);
  json["accx"] = JsonWriter::write(executable);
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Status fromJson(const std::string &text, Executable &executable) {
  Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object())
    return Status::error("expected a JSON object as header");
  auto metadata = json.find("__metadata__");
  if (metadata == json.end() || !metadata->is_object() ||
      metadata->value("format", Json()) != "accx")
    return Status::error("expected the format 'accx' in the header");
  if (metadata->size() != 2)
    return Status::error("expected a format and a version as metadata");
  Json version = metadata->value("version", Json());
  if (version != std::to_string(kFormatVersion))
    return Status::error(
        "expected format version " + std::to_string(kFormatVersion) +
        ", found " +
        (version.is_string() ? version.get<std::string>() : "none"));
  Status status;
  std::unordered_set<std::string_view> keys;
  keys.reserve(json.size());
  executable.sections.reserve(json.size());
  for (auto &[key, value] : json.items()) {
    if (!keys.insert(key).second)
      return Status::error("found the header key " + inQuotes(key) + " twice");
    if (key == "__metadata__")
      continue;
    if (key == "accx") {
      JsonReader reader(value, status);
      if (status.ok())
        describe(reader, executable);
      reader.finish();
      ACCEL_RT_RETURN_IF_ERROR(status);
    } else if (key.rfind(kSectionKey, 0) == 0) {
      ACCEL_RT_RETURN_IF_ERROR(
          readSectionEntry(key, value, executable.sections.emplace_back()));
    } else {
      return Status::error("found a header key " + inQuotes(key) +
                           " that this version does not know");
    }
  }
  return Status();
}

} // namespace accel::rt::format
