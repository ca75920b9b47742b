// What is known while a script is run: variables, arguments, files that it has
// written. A text that only the machine knows stays as it is written, with the
// reason.

#ifndef ACCEL_LIB_CONFIG_SHELL_STATE_H
#define ACCEL_LIB_CONFIG_SHELL_STATE_H

#include "lib/Config/Shell/Syntax.h"

#include <map>

namespace accel::config::shell {

/// Why something is not known, as part of a sentence: "what '$(nproc)' prints".
struct Unknown {
  unsigned line = 0;
  std::string what;
  /// It has a value that depends on a condition, not none at all: nothing may
  /// read it.
  bool isUndecided = false;
  std::string wayOut;
};
using Reason = std::shared_ptr<const Unknown>;

/// The way out where a value has no name.
inline constexpr char kArgumentsAlone[] =
    "give --config the arguments alone, as 'echo' in front of the command "
    "prints them";

/// Whether both are known, or neither for the same reason.
bool areSame(const Reason &left, const Reason &right);

struct Text {
  std::string text;
  unsigned line = 0; ///< where it was written
  Reason unknown;    ///< null: it is known
  /// Of words: it may be several, or none (`$NAME` without quotes).
  bool mayBeSeveral = false;

  bool operator==(const Text &other) const {
    return text == other.text && areSame(unknown, other.unknown);
  }
};

struct Variable {
  std::vector<Text> items; ///< one unless it is an array
  bool isArray = false, isExported = false;
  bool isUnset = false; ///< by `unset`
  Reason unknown;       ///< of an array: how many there are

  bool operator==(const Variable &other) const {
    return items == other.items && isArray == other.isArray &&
           isUnset == other.isUnset && areSame(unknown, other.unknown);
  }
};

struct State {
  std::map<std::string, Variable> variables;
  std::vector<Text> arguments;
  std::map<std::string, std::shared_ptr<const Command>> functions;
  std::map<std::string, Text> files;
  Reason environment; ///< why a name that was not assigned may be set
  Reason argumentsUnknown;

  size_t size() const;
  /// What holds whichever of the two is the truth: where they differ, undecided
  /// for `why`.
  static State join(const State &left, const State &right, const Reason &why);
};

/// What `--set-var` says: it beats what the script assigns.
using Given = std::map<std::string, std::string>;

/// Whether `pattern`, in which a backslash takes a letter's meaning, covers all
/// of `text`; none where it is one that is not supported ([[:alpha:]], @(…)).
/// Takes time in proportion to the product of their lengths at most.
std::optional<bool> matches(llvm::StringRef pattern, llvm::StringRef text);

} // namespace accel::config::shell

#endif // ACCEL_LIB_CONFIG_SHELL_STATE_H
