// Tells Accelerate's files, DeepSpeed's and others by their keys, and walks
// them along the schema.

#include "lib/Config/ReadFile.h"
#include "lib/Config/Copied.h"
#include "lib/Config/ParseArguments.h"
#include "lib/Config/ReadScript.h"
#include "lib/Config/Source.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace llvm;
using namespace accel::config;

const Setting *File::find(StringRef path) const {
  auto found =
      find_if(settings, [&](const Setting &one) { return one.path == path; });
  return found == settings.end() ? nullptr : &*found;
}

const Setting *File::get(StringRef path) const {
  const Setting *setting = find(path);
  return setting && setting->value != "null" ? setting : nullptr;
}

const Setting *File::firstBelow(StringRef prefix) const {
  for (const Setting &setting : settings) {
    StringRef path = setting.path;
    if (path.consume_front(prefix) && path.starts_with("."))
      return &setting;
  }
  return nullptr;
}

void File::erase(StringRef path) {
  llvm::erase_if(settings,
                 [&](const Setting &one) { return one.path == path; });
}

namespace {
/// Walks one document into the settings of a file.
class Reader {
public:
  Reader(File &file, const Document &document, const ReadOptions &options,
         Findings &findings)
      : file(file), syntax(document.syntax), options(options),
        findings(findings) {}

  Error read(const Node &mapping, const Section &section, StringRef prefix);

private:
  Error readKey(const Node &key, const Node &value, const Section &section,
                StringRef prefix);
  Error unknown(const Node &key, const Section &section, StringRef prefix);

  File &file;
  Syntax syntax;
  const ReadOptions &options;
  Findings &findings;
  size_t refused = 0; ///< keys, so far
};
} // namespace

/// Each is compared with every known key, to name the nearest.
static constexpr size_t kMostRefused = 100;

/// What a message says of the key that may have been meant.
static std::string suggest(StringRef nearest) {
  return nearest.empty() ? "" : ", the nearest is '" + nearest.str() + "'";
}

Error Reader::unknown(const Node &key, const Section &section,
                      StringRef prefix) {
  std::string path = (prefix + key.text).str();
  // Accelerate checks the keys of the top only.
  if (options.likeAccelerate && file.kind == File::Kind::Accelerate &&
      !prefix.empty()) {
    findings.differences.push_back(
        {key.place, path, "refused", "ignored", "nested keys are not checked"});
    return Error::success();
  }
  if (prefix.empty() && file.kind == File::Kind::Accelerate &&
      kSageMakerSection.find(key.text))
    return failAt(key.place, "'" + path +
                                 "' is not supported yet: SageMaker as "
                                 "compute environment");
  // A key of another section, put in the wrong one.
  StringRef nearest = section.nearest(key.text);
  for (const Section *other : sections())
    if (other != &section && key.text.size() > 4)
      for (const Key &one : other->keys)
        if (one.name == key.text &&
            (nearest.empty() ||
             nearest.edit_distance_insensitive(key.text) > 2))
          return failAt(key.place, "unknown key '" + path + "': '" + key.text +
                                       "' is a key of '" + other->name + "'");
  std::string typeset = describeTypeset(key.text);
  return failAt(key.place, "unknown key '" + path + "'" +
                               (typeset.empty() ? suggest(nearest) : typeset));
}

Error Reader::readKey(const Node &key, const Node &value,
                      const Section &section, StringRef prefix) {
  const Key *row = section.find(key.text);
  if (!row)
    return unknown(key, section, prefix);
  std::string path = (prefix + row->name).str();
  if (options.likeAccelerate && path == "distributed_type" &&
      value.kind == Node::Kind::Scalar &&
      resolveScalar(value, syntax).type == Scalar::Type::Bool) {
    findings.differences.push_back(
        {value.place, path, "refused", "NO",
         "YAML 1.1 reads unquoted NO as false, which no "
         "launcher is chosen for"});
    file.settings.push_back({path, row, "NO", value.place});
    return Error::success();
  }
  Expected<std::string> checked = checkType(*row, path, value, syntax);
  if (!checked)
    return checked.takeError();
  if (const Setting *other = file.find(path)) {
    // A command line may repeat itself; a file must not.
    if (syntax == Syntax::Arguments && other->value == *checked)
      return Error::success();
    return failAt(key.place, "'" + path + "' is said twice, as '" + key.text +
                                 "' and in line " + Twine(other->place.line));
  }
  // A value without text, a null, has no place of its own.
  bool placed = value.kind == Node::Kind::Scalar && !value.text.empty();
  file.settings.push_back(
      {path, row, *checked, placed ? value.place : key.place});
  const Section *inner = sectionOf(*row);
  if (!inner || value.kind != Node::Kind::Mapping)
    return Error::success();
  return read(value, *inner, path + ".");
}

Error Reader::read(const Node &mapping, const Section &section,
                   StringRef prefix) {
  Error errors = Error::success();
  for (auto &[key, value] : mapping.entries) {
    Error error = readKey(key, value, section, prefix);
    if (!error)
      continue;
    errors = joinErrors(std::move(errors), std::move(error));
    if (++refused == kMostRefused)
      return joinErrors(std::move(errors),
                        failAt(key.place, "expected keys that are known, found "
                                          "so many others that the rest is "
                                          "not read"));
  }
  return errors;
}

static bool isHarmless(const Setting &setting) {
  return is_contained(split(setting.key->harmless, '|'), setting.value);
}

bool File::isIdle(const Setting &setting) const {
  const Setting *type = get("distributed_type");
  if (!type || type->value != "NO")
    return false;
  for (StringRef section :
       {"fsdp_config.", "deepspeed_config.", "megatron_lm_config."})
    if (StringRef(setting.path).starts_with(section))
      return true;
  return false;
}

bool accel::config::isRefused(const Setting &setting) {
  bool open = setting.key->fate != Fate::Later && setting.key->harmless.empty();
  // What is null (by --set, where the file may not say it) is not there.
  return !open && !isHarmless(setting) && setting.value != "null";
}

/// The error of a value that is not supported yet; success of all others.
static Error refuseLater(const Setting &setting) {
  if (!isRefused(setting))
    return Error::success();
  const Key &key = *setting.key;
  std::string message =
      "'" + setting.path + ": " + setting.value + "' is not supported yet";
  std::string taken;
  StringRef least = "null"; // as if the key were not there
  for (StringRef one : split(key.harmless, '|')) {
    if (one.empty() || one == "null" || one.starts_with("{"))
      continue;
    if (taken.empty())
      least = one;
    taken += (taken.empty() ? "" : ", ") + one.str();
  }
  if (key.fate == Fate::Later)
    return failAt(setting.place, message + ": " + key.note + "; --set " +
                                     setting.path + "=" + least +
                                     " goes on without");
  message += ", only " + taken;
  if (key.fate == Fate::Noted)
    message +=
        "; --set " + setting.path + "=" + least.str() + " goes on without";
  else
    message += "; --set " +
               (key.beatenBy.empty() ? setting.path : key.beatenBy.str()) +
               "=VALUE decides";
  return failAt(setting.place, message);
}

Error accel::config::refuseLater(const File &file) {
  Error errors = Error::success();
  for (const Setting &setting : file.settings)
    if (!file.isIdle(setting) && setting.idle.empty())
      errors = joinErrors(std::move(errors), ::refuseLater(setting));
  return errors;
}

/// How many of the document's keys are a section's.
static size_t countKeys(const Document &document, const Section &section) {
  return count_if(document.root.entries, [&](auto &entry) {
    return section.find(entry.first.text) != nullptr;
  });
}

/// Of which kind a document is: of that which more of its keys belong to.
static Expected<File::Kind> tellKind(const Document &document) {
  if (document.syntax == Syntax::Arguments)
    return File::Kind::Megatron;
  size_t accelerate = countKeys(document, kAccelerateSection) +
                      countKeys(document, kSageMakerSection);
  size_t deepSpeed = countKeys(document, kDeepSpeedSection);
  if (countKeys(document, kHandlersSection) > accelerate + deepSpeed)
    return File::Kind::Handlers;
  if (accelerate > deepSpeed)
    return File::Kind::Accelerate;
  if (deepSpeed > 0 ||
      (document.syntax == Syntax::Json && document.root.entries.empty()))
    return File::Kind::DeepSpeed;
  if (document.root.entries.empty())
    return failAt(document.root.place, "expected a config file of Accelerate "
                                       "or DeepSpeed, found no key");
  const Node &key = document.root.entries.front().first;
  StringRef nearest = kAccelerateSection.nearest(key.text);
  StringRef other = kDeepSpeedSection.nearest(key.text);
  if (nearest.empty() ||
      (!other.empty() && other.edit_distance_insensitive(key.text) <
                             nearest.edit_distance_insensitive(key.text)))
    nearest = other;
  std::string typeset = describeTypeset(key.text);
  return failAt(key.place, "expected a config file of Accelerate or DeepSpeed: "
                           "unknown key '" +
                               key.text + "'" +
                               (typeset.empty() ? suggest(nearest) : typeset));
}

static const Section &rootOf(File::Kind kind) {
  switch (kind) {
  case File::Kind::Accelerate:
    return kAccelerateSection;
  case File::Kind::DeepSpeed:
    return kDeepSpeedSection;
  case File::Kind::Handlers:
    return kHandlersSection;
  case File::Kind::Megatron:
    return kMegatronArgumentsSection;
  }
  llvm_unreachable("unknown kind of file");
}

const Key *accel::config::findByPath(File::Kind kind, StringRef path) {
  const Section *section = &rootOf(kind);
  for (;;) {
    auto [name, rest] = path.split('.');
    const Key *key = section->find(name);
    if (!key || rest.empty())
      return key;
    section = sectionOf(*key);
    if (!section)
      return nullptr;
    path = rest;
  }
}

/// Puts what `--set` says under a path of this file in that key's place.
static Error placeSets(File &file, const ReadOptions &options,
                       Findings &findings) {
  Error errors = Error::success();
  for (auto &[path, text] : options.sets) {
    const Key *row = findByPath(file.kind, path);
    if (!row)
      continue;
    Node said;
    said.place = {"--set", 0};
    said.text = text;
    // As if the key were not there, where its type has no null too.
    Expected<std::string> value =
        text == "null" ? Expected<std::string>(text)
                       : checkType(*row, path, said, Syntax::Json);
    if (!value) {
      errors = joinErrors(std::move(errors), value.takeError());
      continue;
    }
    auto found = find_if(file.settings, [&, &path = path](auto &one) {
      return one.path == path;
    });
    if (found == file.settings.end()) {
      file.settings.push_back({path, row, *value, said.place});
      continue;
    }
    if (found->value != *value)
      findings.overrides.push_back({path, *value, found->value, found->place});
    found->value = *value;
    found->place = said.place;
  }
  return errors;
}

static Error readInto(File &file, const Document &document,
                      const ReadOptions &options, Findings &findings) {
  Error errors = Reader(file, document, options, findings)
                     .read(document.root, rootOf(file.kind), "");
  return joinErrors(std::move(errors), placeSets(file, options, findings));
}

/// Accelerate reads JSON with Python's json, which takes nothing else.
static void noteBeyondJson(const Document &document, StringRef path,
                           Findings &findings) {
  if (document.beyondJson)
    findings.differences.push_back(
        {document.beyondJson->first, path.str(), "read", "refused",
         document.beyondJson->second +
             ", which DeepSpeed reads, and Accelerate's reader of JSON does "
             "not"});
}

/// The DeepSpeed JSON that `outer` names, as a file of its own.
static Error readNamed(const File &outer, const Document &document,
                       const Setting &named, const ReadOptions &options,
                       std::vector<File> &into, Findings &findings) {
  File file;
  file.kind = File::Kind::DeepSpeed;
  file.parent = named.place;
  Document inner;
  if (named.value == "{...}" || named.value == "{}") { // a mapping in its place
    for (auto &[key, value] : document.root.entries)
      if (key.text == "deepspeed_config")
        for (auto &[innerKey, innerValue] : value.entries)
          if (innerKey.text == "deepspeed_config_file")
            inner.root = innerValue;
    inner.syntax = document.syntax;
    file.name = outer.name;
  } else {
    auto opened = openSource(named.value, named.place);
    if (!opened)
      return opened.takeError();
    file.name = opened->first;
    Expected<Document> parsed = parseDocument(opened->second, opened->first);
    if (!parsed)
      return parsed.takeError();
    inner = std::move(*parsed);
  }
  noteBeyondJson(inner, named.path, findings);
  Error errors = readInto(file, inner, options, findings);
  if (!errors && !file.find("zero_optimization"))
    errors =
        failAt(inner.root.place,
               "expected 'zero_optimization', which Accelerate needs in the "
               "DeepSpeed JSON that " +
                   named.place.str() + " names");
  into.push_back(std::move(file));
  return errors;
}

/// The DeepSpeed JSON that arguments of a script name, which the script itself
/// may write.
static Error readOfScript(const File &outer, const Document &document,
                          const ReadOptions &options, std::vector<File> &into,
                          Findings &findings) {
  const Setting *uses = outer.get("--deepspeed");
  const Setting *named = outer.get("--deepspeed_config");
  if (!uses || uses->value != "true" || !named)
    return Error::success();
  File file;
  file.kind = File::Kind::DeepSpeed;
  std::string text;
  auto written = find_if(document.written, [&](const auto &one) {
    return one.first == named->value;
  });
  if (written != document.written.end()) {
    file.name = outer.name + "(" + named->value + ")";
    text = written->second;
  } else {
    auto opened = openSource(named->value, named->place);
    if (!opened)
      return opened.takeError();
    std::tie(file.name, text) = *opened;
  }
  Expected<Document> inner = parseDocument(text, file.name);
  if (!inner)
    return inner.takeError();
  noteBeyondJson(*inner, named->path, findings);
  Error errors = readInto(file, *inner, options, findings);
  into.push_back(std::move(file));
  return errors;
}

Error accel::config::readFiles(StringRef source, const ReadOptions &options,
                               std::vector<File> &into, Findings &findings) {
  auto opened = openSource(source, Place{});
  if (!opened)
    return opened.takeError();
  if (Error error = refuseCopied(opened->second, opened->first))
    return error;
  bool isScript = !looksLikeArguments(opened->second) &&
                  looksLikeScript(opened->second, opened->first);
  if (isScript)
    for (const auto &[variable, value] : options.variables)
      if (hasPlaceFor(variable, opened->second))
        findings.variables.insert(variable);
  Expected<Document> document =
      looksLikeArguments(opened->second)
          ? parseArguments(opened->second, opened->first)
      : isScript ? readScript(opened->second, opened->first, options.variables)
                 : parseDocument(opened->second, opened->first);
  if (!document)
    return document.takeError();
  Expected<File::Kind> kind = tellKind(*document);
  if (!kind)
    return kind.takeError();
  File file;
  file.name = opened->first;
  file.kind = *kind;
  if (*kind == File::Kind::Accelerate &&
      StringRef(file.name).ends_with(".json"))
    noteBeyondJson(*document, "all", findings);
  Error errors = readInto(file, *document, options, findings);
  std::optional<Setting> named;
  if (const Setting *found = file.get("deepspeed_config.deepspeed_config_file");
      found && found->value != "none" && file.get("distributed_type") &&
      file.get("distributed_type")->value == "DEEPSPEED")
    named = *found;
  into.push_back(std::move(file));
  File outer = into.back(); // `into` grows
  if (*kind == File::Kind::Megatron)
    return joinErrors(std::move(errors),
                      readOfScript(outer, *document, options, into, findings));
  if (!named)
    return errors;
  return joinErrors(std::move(errors), readNamed(outer, *document, *named,
                                                 options, into, findings));
}
