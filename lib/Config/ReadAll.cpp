// Reads what --set and the files say, and has them checked by themselves: all
// that is refused of them is told at once.

#include "lib/Config/ClaimFp8.h"
#include "lib/Config/Resolver.h"
#include "lib/Config/Shell/Syntax.h"
#include "lib/Names/Nearest.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

#include <set>

using namespace llvm;
using namespace accel::config;

/// Whether a file of some kind has a place for a key.
static bool isPath(StringRef name) {
  return any_of(std::initializer_list<File::Kind>{File::Kind::Accelerate,
                                                  File::Kind::DeepSpeed,
                                                  File::Kind::Handlers,
                                                  File::Kind::Megatron},
                [&](File::Kind kind) { return findByPath(kind, name); });
}

/// What to say for a key that `--set` has no place for.
static Error unknownSet(StringRef name, bool hasFiles) {
  SmallVector<StringRef> names;
  for (const NamedSetting &one : namedSettings())
    names.push_back(one.name);
  std::string suggestion = accel::suggestName(name, names);
  if (!hasFiles && isPath(name))
    return failFlag("'" + name +
                    "' of --set is a key of config files: expected --config, "
                    "or a setting itself" +
                    suggestion);
  return failFlag("unknown key '" + name + "' of --set" + suggestion);
}

Error Resolver::readSets() {
  std::set<std::string> seen;
  auto read = [&](StringRef set) -> Error {
    auto [name, value] = set.split('=');
    if (name.empty() || value.empty())
      return failFlag("expected --set key=value, found '" + set + "'");
    if (!seen.insert(name.str()).second)
      return failFlag("'" + name + "' is set twice");
    if (findSetting(name))
      sets.emplace_back(name, value);
    else if (!request.files.empty() && isPath(name))
      pathSets.emplace_back(name, value);
    else
      return unknownSet(name, !request.files.empty());
    return Error::success();
  };
  Error errors = Error::success();
  for (const std::string &set : request.sets)
    errors = joinErrors(std::move(errors), read(set));
  return errors;
}

void Resolver::claimSets() {
  for (auto &[name, value] : sets)
    if (describeMismatch(*findSetting(name), value).empty())
      // The update checks its own settings.
      ledger.claim(name,
                   name == "optimizer.type" ? StringRef(value).lower() : value,
                   {Origin::Kind::Set, {"--set", 0}, ""});
}

void Resolver::beatRefused(File &file) {
  for (Setting &setting : file.settings) {
    StringRef name = setting.key->beatenBy;
    const std::string *said =
        name.empty() || !isRefused(setting) ? nullptr : ledger.findSet(name);
    if (!said)
      continue;
    setting.idle = ("--set " + name + "=" + *said + " beats it").str();
    // What is done, but for this value, is claimed, and its loss told with it.
    if (setting.key->fate == Fate::Later)
      config.overrides.push_back({name.str(), *said,
                                  setting.path + "=" + setting.value,
                                  setting.place});
  }
}

/// What `--set-var` says, by name.
static Error readVariables(ArrayRef<std::string> variables,
                           std::map<std::string, std::string> &into) {
  Error errors = Error::success();
  for (StringRef one : variables) {
    auto [name, value] = one.split('=');
    bool isName = !name.empty() && !all_of(name, isDigit) &&
                  all_of(name, shell::isNameLetter);
    unsigned number = 0;
    bool isArgument =
        !name.getAsInteger(10, number) && number > 0 && number <= 1000;
    if (!one.contains('=') || (!isName && !isArgument))
      errors =
          joinErrors(std::move(errors),
                     failFlag("expected --set-var NAME=VALUE, or a number "
                              "from 1 as the name of an argument, found '" +
                              one + "'"));
    else if (!into.emplace(name, value).second)
      errors =
          joinErrors(std::move(errors),
                     failFlag("'" + name + "' of --set-var is said twice"));
  }
  return errors;
}

Error Resolver::readAll() {
  Error errors = readSets();
  claimSets();
  Findings findings;
  ReadOptions options{pathSets, request.likeAccelerate, {}};
  errors = joinErrors(std::move(errors),
                      readVariables(request.variables, options.variables));
  for (const std::string &source : request.files)
    errors = joinErrors(std::move(errors),
                        readFiles(source, options, files, findings));
  // A file of which something could not be read may contradict itself for want
  // of it.
  bool isRead = !errors;
  config.differences = std::move(findings.differences);
  config.overrides = std::move(findings.overrides);
  for (auto &[path, value] : pathSets)
    if (isRead && none_of(files, [&, &path = path](const File &file) {
          return file.find(path) != nullptr;
        }))
      errors = joinErrors(std::move(errors),
                          failFlag("no file of --config has a place for '" +
                                   path + "' of --set"));
  for (const auto &[variable, value] : options.variables)
    if (isRead && !findings.variables.count(variable))
      errors = joinErrors(std::move(errors),
                          failFlag("no script of --config has a place for '" +
                                   variable + "' of --set-var"));
  findHookDifferences(files, request.likeAccelerate, config.differences);
  for (size_t i = 0; i < files.size(); ++i) {
    File &file = files[i];
    bool named = i + 1 < files.size() && files[i + 1].parent.isFile();
    findDifferences(file, request.likeAccelerate, config.differences);
    if (isRead)
      errors = joinErrors(std::move(errors), checkAgreement(file, named));
    beatRefused(file);
    errors = joinErrors(std::move(errors), refuseLater(file));
  }
  if (errors)
    return errors;
  for (size_t i = 0; i < files.size(); ++i) {
    File &file = files[i];
    bool named = i + 1 < files.size() && files[i + 1].parent.isFile();
    for (Setting &setting : file.settings)
      if (file.isIdle(setting))
        setting.idle = "distributed_type is NO";
    if (file.kind == File::Kind::Accelerate) {
      claimAccelerate(file, named, ledger, layout);
      errors =
          joinErrors(std::move(errors), claimFp8OfAccelerate(file, ledger));
    } else if (file.kind == File::Kind::DeepSpeed)
      errors = joinErrors(std::move(errors), claimDeepSpeed(file, ledger));
    else if (file.kind == File::Kind::Megatron)
      errors =
          joinErrors(std::move(errors), claimMegatron(file, ledger, layout));
    else
      errors = joinErrors(std::move(errors), claimHandlers(file, ledger));
    append_range(config.keys, file.settings);
  }
  return errors;
}
