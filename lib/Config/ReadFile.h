// A config file as a list of settings that have been held against the schema.

#ifndef ACCEL_LIB_CONFIG_READFILE_H
#define ACCEL_LIB_CONFIG_READFILE_H

#include "Config.h"

#include <map>
#include <set>

namespace accel::config {

struct File {
  /// Handlers: what scripts pass to Accelerate; Megatron: arguments of a
  /// script of Megatron-LM's.
  enum class Kind { Accelerate, DeepSpeed, Handlers, Megatron };
  std::string name; ///< what messages call it
  Kind kind = Kind::Accelerate;
  /// The Accelerate file that names this one; its key, else an empty place.
  Place parent;
  std::vector<Setting> settings;

  const Setting *find(llvm::StringRef path) const;
  /// Of a key that is there and not null; null else.
  const Setting *get(llvm::StringRef path) const;
  /// Whether a key stands below `prefix` (a section's name).
  const Setting *firstBelow(llvm::StringRef prefix) const;
  void erase(llvm::StringRef path);
  /// Whether nothing reads the setting: it stands in a section that shards,
  /// beside `distributed_type: NO`.
  bool isIdle(const Setting &setting) const;
};

/// How files are read.
struct ReadOptions {
  /// Keys by their path in a file, and the values that `--set` puts there.
  llvm::ArrayRef<std::pair<std::string, std::string>> sets;
  bool likeAccelerate = false; ///< drop what Accelerate drops
  /// `--set-var`: what scripts get from outside.
  std::map<std::string, std::string> variables;
};

/// What reading leaves beside the settings.
struct Findings {
  std::vector<Difference> differences;
  std::vector<Override> overrides;
  /// Names of `--set-var` that a script may read.
  std::set<std::string> variables;
};

/// The row of a key by its path from the root of a file of that kind; null if
/// there is none.
const Key *findByPath(File::Kind kind, llvm::StringRef path);

/// Reads the file `source` (a path, a JSON text, or one in base64) and, where
/// it names a DeepSpeed JSON, that one too. Checks keys and types; what it
/// refuses of them are errors all at once, beside which the file is there with
/// the rest of its keys.
llvm::Error readFiles(llvm::StringRef source, const ReadOptions &options,
                      std::vector<File> &into, Findings &findings);

/// The name of an FSDP strategy, which may be said by its number, from 1.
llvm::StringRef nameStrategy(llvm::StringRef value);

/// Finds out where Accelerate does not do what `file` says, and with `apply`
/// makes the file say what it does.
void findDifferences(File &file, bool apply,
                     std::vector<Difference> &differences);

/// The same of what a file says of another's ranks: a hook of a reduction that
/// is not DistributedDataParallel's.
void findHookDifferences(llvm::MutableArrayRef<File> files, bool apply,
                         std::vector<Difference> &differences);

/// Refuses what the keys of one file contradict each other in.
llvm::Error checkAgreement(const File &file, bool hasDeepSpeedFile);

/// Whether the value is none that is supported yet.
bool isRefused(const Setting &setting);

/// Refuses every key of `file` whose value is not supported yet, unless it
/// stands in a section that is not read, or is idle already.
llvm::Error refuseLater(const File &file);

} // namespace accel::config

#endif // ACCEL_LIB_CONFIG_READFILE_H
