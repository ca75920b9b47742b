// A configuration as text and as JSON, and the schema as the tables of
// docs/ConfigKeys.md.

#include "Config.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"

using namespace llvm;
using namespace accel::config;

/// What became of a key: its row's note, with what a trap would have made of
/// it.
static std::string describeFate(const Setting &setting) {
  StringRef note = setting.key->note;
  if (!setting.idle.empty())
    return "not read: " + setting.idle;
  switch (setting.key->fate) {
  case Fate::Done:
    return "done: " + note.str();
  case Fate::Noted:
    return "noted: " + note.str();
  case Fate::Later:
    return "not asked for: " + note.str();
  }
  llvm_unreachable("unknown fate");
}

std::string accel::config::describeKey(const Setting &setting) {
  StringRef value = setting.value == "{...}" ? "(section)"
                    : setting.value == "{}"  ? "(nothing)"
                                             : StringRef(setting.value);
  return formatv("{0}: {1} = {2}; {3}", setting.place.str(), setting.path,
                 value, describeFate(setting));
}

static StringRef kindName(Origin::Kind kind) {
  switch (kind) {
  case Origin::Kind::Default:
    return "default";
  case Origin::Kind::Derived:
    return "derived";
  case Origin::Kind::File:
    return "file";
  case Origin::Kind::Flag:
    return "flag";
  case Origin::Kind::Set:
    return "set";
  }
  llvm_unreachable("unknown kind of origin");
}

static void printSettings(const Config &config, raw_ostream &os) {
  os << "settings\n";
  for (const Resolved &one : config.resolved)
    os << formatv("  {0,-31} {1,-14} {2}\n", one.name, one.value,
                  one.origin.str());
  if (config.missing)
    os << "missing\n  "
       << (config.missing->first.isFile() ? config.missing->first.str() + ": "
                                          : "")
       << config.missing->second << "\n";
  if (!config.overrides.empty())
    os << "overrides\n";
  for (const Override &one : config.overrides)
    os << formatv("  --set {0}={1} beats {2} ({3})\n", one.name, one.value,
                  one.beaten, one.place.str());
  if (!config.keys.empty())
    os << "keys read\n";
  for (const Setting &setting : config.keys)
    os << "  " << describeKey(setting) << "\n";
}

static void printDifferences(const Config &config, raw_ostream &os) {
  os << "differences from Accelerate\n";
  for (const Difference &one : config.differences)
    os << formatv("  {0}: {1}: {2} here, {3} there: {4}\n", one.place.str(),
                  one.path, one.here, one.there, one.why);
  if (config.differences.empty())
    os << "  none\n";
}

static void printPlace(json::OStream &out, const Place &place) {
  if (place.file.empty())
    return;
  out.attribute(place.isFile() ? "file" : "flag", place.file);
  if (place.isFile())
    out.attribute("line", place.line);
}

static void printSettingsJson(const Config &config, json::OStream &out) {
  out.attributeArray("settings", [&] {
    for (const Resolved &one : config.resolved)
      out.object([&] {
        out.attribute("key", one.name);
        out.attribute("value", one.value);
        out.attribute("origin", kindName(one.origin.kind));
        printPlace(out, one.origin.place);
        if (!one.origin.detail.empty())
          out.attribute("detail", one.origin.detail);
      });
  });
  if (config.missing)
    out.attributeObject("missing", [&] {
      printPlace(out, config.missing->first);
      out.attribute("message", config.missing->second);
    });
  out.attributeArray("overrides", [&] {
    for (const Override &one : config.overrides)
      out.object([&] {
        out.attribute("key", one.name);
        out.attribute("value", one.value);
        out.attribute("beats", one.beaten);
        printPlace(out, one.place);
      });
  });
  out.attributeArray("keys", [&] {
    for (const Setting &setting : config.keys)
      out.object([&] {
        out.attribute("key", setting.path);
        out.attribute("value", setting.value);
        printPlace(out, setting.place);
        out.attribute("fate", !setting.idle.empty()
                                  ? StringRef("idle")
                                  : stringifyFate(setting.key->fate));
        out.attribute("note", setting.key->note);
        if (!setting.key->trap.empty())
          out.attribute("trap", setting.key->trap);
      });
  });
}

static void printDifferencesJson(const Config &config, json::OStream &out) {
  out.attributeArray("differences", [&] {
    for (const Difference &one : config.differences)
      out.object([&] {
        out.attribute("key", one.path);
        printPlace(out, one.place);
        out.attribute("here", one.here);
        out.attribute("accelerate", one.there);
        out.attribute("why", one.why);
      });
  });
}

void accel::config::printConfig(const Config &config,
                                const PrintOptions &options, raw_ostream &os) {
  if (!options.json) {
    if (options.settings)
      printSettings(config, os);
    if (options.differences)
      printDifferences(config, os);
    return;
  }
  json::OStream out(os, 2);
  out.objectBegin();
  if (options.settings)
    printSettingsJson(config, out);
  if (options.differences)
    printDifferencesJson(config, out);
  out.objectEnd();
  os << "\n";
}

/// A cell of a Markdown table.
static std::string cell(StringRef text) {
  std::string result;
  for (char c : text) {
    if (c == '|')
      result += '\\';
    result += c;
  }
  return result;
}

/// "int, at least 1, or `auto`" in the words of a type.
static std::string typeCell(StringRef type) {
  std::vector<std::string> parts;
  for (StringRef one : split(type, '|')) {
    if (one.starts_with("%"))
      parts.push_back("section");
    else if (one == "flag")
      parts.push_back("bool");
    else
      parts.push_back(join(split(one.ltrim('~'), ','), ", "));
  }
  return join(parts, "; ");
}

/// How many of the keys that `keys` begins with are noted for one reason: where
/// they are many they are a row of their own.
static size_t countAlike(ArrayRef<Key> keys) {
  size_t count = 0;
  while (count < keys.size() && keys[count].fate == Fate::Noted &&
         keys[count].harmless.empty() && keys[count].trap.empty() &&
         keys[count].note == keys.front().note)
    ++count;
  return count;
}

void accel::config::printSchema(raw_ostream &os) {
  constexpr size_t kMany = 12;
  for (const Section *section : sections()) {
    os << "\n### " << section->title << "\n\n"
       << "| key | type | default | fate | what becomes of it | trap |\n"
       << "|---|---|---|---|---|---|\n";
    for (ArrayRef<Key> rest = section->keys; !rest.empty();) {
      const Key &key = rest.front();
      if (size_t alike = countAlike(rest); alike >= kMany) {
        std::string names;
        for (const Key &one : rest.take_front(alike))
          names += (names.empty() ? "`" : ", `") + one.name.str() + "`";
        os << "| " << names << " | theirs | theirs | noted | " << cell(key.note)
           << " |  |\n";
        rest = rest.drop_front(alike);
        continue;
      }
      rest = rest.drop_front();
      std::string fate = stringifyFate(key.fate).str();
      if (!key.harmless.empty())
        fate += key.fate == Fate::Later ? ", save " : ", only ";
      bool first = true;
      for (StringRef one : split(key.harmless, '|')) {
        if (one.empty())
          continue;
        fate += (first ? "" : ", ") + one.str();
        first = false;
      }
      os << "| `" << key.name << "` | " << cell(typeCell(key.type)) << " | "
         << cell(key.fallback) << " | " << fate << " | " << cell(key.note)
         << " | " << cell(key.trap) << " |\n";
    }
  }
}
