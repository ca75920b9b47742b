// From the user's config files and flags to one set of settings, each of which
// knows where it comes from.

#ifndef ACCEL_LIB_CONFIG_CONFIG_H
#define ACCEL_LIB_CONFIG_CONFIG_H

#include "Schema.h"
#include "llvm/Support/raw_ostream.h"
#include <optional>

namespace accel::config {

/// Why a setting has its value.
struct Origin {
  enum class Kind { Default, Derived, File, Flag, Set };
  Kind kind = Kind::Default;
  Place place;        ///< of a file, or the flag
  std::string detail; ///< the key in the file; how it was derived

  /// `a.yaml:3 zero_stage`, `--mesh`, `--set`, `derived: …`, `default`.
  std::string str() const;
};

/// A key as a file (or `--set` in its place) says it.
struct Setting {
  std::string path; ///< "fsdp_config.fsdp_version", "zero_optimization.stage"
  const Key *key = nullptr;
  std::string value; ///< as `checkType` spells it
  Place place;
  /// Why nothing reads it here; empty where something does.
  std::string idle = {};
};

/// What one of the names that a program is decided by resolved to.
struct Resolved {
  std::string name, value;
  Origin origin;
};

/// `--set` against what it beat.
struct Override {
  std::string name, value, beaten;
  Place place; ///< of what was beaten
};

/// Where Accelerate does not do what the file says.
struct Difference {
  Place place;
  std::string path, here, there, why;
};

/// What was asked for on the command line.
struct Request {
  /// `--config`: paths; a JSON's own text, or its text in URL-safe base64.
  std::vector<std::string> files;
  std::vector<std::string> sets;             ///< `--set`: "key=value"
  std::vector<std::string> variables;        ///< `--set-var`: "NAME=VALUE"
  std::string mesh;                          ///< `--mesh`; empty: not given
  std::optional<int64_t> microBatches;       ///< `--micro-batches`
  std::optional<std::string> schedule;       ///< `--schedule`
  std::optional<std::string> recompute;      ///< `--recompute`
  std::optional<std::string> memoryBudget;   ///< `--memory-budget`
  std::optional<std::string> mixedPrecision; ///< `--mixed-precision`
  std::optional<std::string> optimizer;      ///< `--optimizer`
  bool likeAccelerate = false;               ///< `--compat=accelerate`
};

struct Config {
  /// Sorted by their place in the list of names, which is fixed.
  std::vector<Resolved> resolved;
  std::vector<Setting> keys;       ///< everything that was read, in order
  std::vector<Override> overrides; ///< in the order of `--set`
  std::vector<Difference> differences;

  // The same for the phases of a compilation.
  std::string mesh; ///< "dp_shard=4"; `--mesh` as it is where it was given
  int64_t microBatches = 1;
  std::string mixedPrecision;        ///< "", "bf16" or "fp16"
  std::string optimizer;             ///< as --optimizer; empty: its default
  std::vector<std::string> settings; ///< as `--set` of the update
  /// Names and values of what passes obey (`zero_stage`).
  std::vector<std::pair<std::string, std::string>> ofPasses;
  /// Rows of a step over all ranks, where a file says so, and where.
  std::optional<std::pair<int64_t, Origin>> batchSize;
  /// Something that nothing says, which only compiling needs: an error then.
  std::optional<std::pair<Place, std::string>> missing;

  const Resolved *find(llvm::StringRef name) const;
};

/// Reads the files and joins them with the flags. Two files, or a file and a
/// flag, that disagree are an error that names both places; `--set` beats both.
/// Errors are ConfigErrors: all those of files and flags, where they stand by
/// themselves, come at once.
llvm::Expected<Config> resolveConfig(const Request &request);

/// Adds to `config.differences` the settings that come out otherwise when the
/// same request is resolved as Accelerate would. Requires `request` without
/// `likeAccelerate`.
void compareWithAccelerate(const Request &request, Config &config);

/// What `printConfig` prints.
struct PrintOptions {
  /// Settings and where they come from, what `--set` beat, every key that was
  /// read and what became of it.
  bool settings = true;
  bool differences = false; ///< where Accelerate would differ
  bool json = false;
};

void printConfig(const Config &config, const PrintOptions &options,
                 llvm::raw_ostream &os);

/// `a.yaml:3: fsdp_config.fsdp_version = 2; done: …`: a key that was read, and
/// what became of it.
std::string describeKey(const Setting &setting);

/// Prints the tables of docs/ConfigKeys.md.
void printSchema(llvm::raw_ostream &os);

} // namespace accel::config

#endif // ACCEL_LIB_CONFIG_CONFIG_H
