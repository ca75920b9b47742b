// Runs a script as far as it is known what it does, for the commands of Python
// that it starts.

#ifndef ACCEL_LIB_CONFIG_SHELL_RUN_H
#define ACCEL_LIB_CONFIG_SHELL_RUN_H

#include "lib/Config/Shell/State.h"

#include "llvm/ADT/ArrayRef.h"

#include <functional>

namespace accel::config::shell {

/// How deep calls, expansions and loops in them may be.
inline constexpr unsigned kDeepestRun = 64;
/// Items of an array, and numbers of `seq`.
inline constexpr int64_t kMostItems = 4096;

/// A command that starts FILE.py.
struct Launch {
  std::vector<Text> words;
  size_t script = 0; ///< the word that is FILE.py
  unsigned line = 0;
  Reason condition; ///< what decides whether it is started; null: it is
  std::map<std::string, Text> files; ///< which the script has written by then
};

struct Ran {
  std::vector<Launch> launches; ///< different ones
  /// Where the script ended itself before its end.
  std::optional<unsigned> endedAt;
};

/// What Slurm's variables are by the `#SBATCH` lines at the script's head.
std::map<std::string, std::string> variablesOfSlurm(llvm::StringRef text);

/// The value of the first of `flags` that stands in `words`: `--flag VALUE` or
/// `--flag=VALUE`, of which '-' and '_' are the same; empty where none does.
Text valueOf(llvm::ArrayRef<Text> words, llvm::ArrayRef<llvm::StringRef> flags);

/// How many ranks a command starts.
struct Ranks {
  Text ofMachine, machines; ///< an empty text where nothing says it
};

/// By the words in front of FILE.py: torchrun, deepspeed, mpirun, srun.
Ranks countRanks(const Launch &launch,
                 const std::map<std::string, std::string> &slurm);

/// Runs `text`, which comes from `name`. Nothing outside is started, written or
/// read, but for what the script sources. Refuses what `parse` refuses, and
/// more than 100,000 commands, 1 MiB of expansions, 64 MiB of copies of what is
/// known.
llvm::Expected<Ran> run(llvm::StringRef text, llvm::StringRef name,
                        const Given &given);

/// What one part of the work leaves to the next.
class Runner {
public:
  Runner(llvm::StringRef name, const Given &given)
      : name(name.str()), given(given) {}

  /// A result that is not known has a reason.
  struct Status {
    std::optional<bool> ok = true;
    Reason why;
  };
  enum class Flow { Next, Break, Continue, Return, Exit };

  Flow runText(llvm::StringRef text, unsigned line, bool isOneLine);
  Ran takeResult() { return std::move(result); }

  State state;
  std::optional<std::pair<unsigned, std::string>> failure;
  std::string failedIn; ///< the file that was sourced there; empty: this one

private:
  friend class Expander;
  friend class Condition;

  void fail(unsigned where, const llvm::Twine &message) {
    if (!failure)
      failure = {where, message.str()};
  }
  Reason makeReason(unsigned line, const llvm::Twine &what,
                    const llvm::Twine &wayOut, bool isUndecided = false);
  void spend(size_t bytes);
  void spendCopy(size_t bytes);
  State copyState();

  // Run.cpp
  Flow runList(const List &list);
  Flow runAndOr(const AndOr &list);
  Flow runPipeline(const Pipeline &pipeline);
  Flow runCommand(const Command &command);
  Flow runIf(const Command &command, size_t branch);
  Flow runCase(const Command &command);
  Flow runFor(const Command &command);
  Flow runCount(const Command &command);
  Flow runWhile(const Command &command);
  Flow runBody(const List &body, bool &ends);
  Flow runUndecided(llvm::ArrayRef<std::function<Flow()>> branches,
                    bool mayBeNone, Reason why);
  Flow runChild(llvm::function_ref<Flow()> body, bool isProcess);

  // Builtins.cpp
  Flow runSimple(const Command &command);
  Flow runWords(const Command &command, std::vector<Text> words);
  Flow runFunction(llvm::StringRef called, std::vector<Text> words);
  Flow runSource(llvm::ArrayRef<Text> words, unsigned line);
  Flow runShell(std::vector<Text> words, size_t shell, bool &isShell);
  bool runBuiltin(const Command &command, std::vector<Text> &words, Flow &flow);
  Text compute(llvm::StringRef command, llvm::ArrayRef<Text> words,
               unsigned line);
  Text cutPath(llvm::StringRef command, llvm::ArrayRef<Text> words,
               unsigned line);
  void print(const Command &command, Text text);
  void redirect(const Command &command);
  void noteLaunch(std::vector<Text> words, unsigned line);

  // Variables.cpp
  void declare(const Command &command, llvm::ArrayRef<Text> words);
  void runSet(llvm::ArrayRef<Text> words);
  void assign(const Assignment &assignment, bool exports);
  void setVariable(const std::string &variable, Variable value);
  void forget(llvm::ArrayRef<Text> names, unsigned line,
              llvm::StringRef command);

  // Expand.cpp
  std::vector<Text> expandWords(llvm::ArrayRef<Word> words);
  Text expandText(llvm::StringRef raw, unsigned line, bool asPattern = false);
  Text expandHere(const Here &here, unsigned line);
  Text capture(llvm::StringRef inner, unsigned line, llvm::StringRef raw);
  Text compute(llvm::StringRef inner, unsigned line, llvm::StringRef raw);

  // Condition.cpp
  Status test(std::vector<Text> words, unsigned line);
  Status testCompound(const Command &command);
  Status testArithmetic(const Command &command);

  std::string name;
  const Given &given;
  Ran result;
  Status status;
  Text *output = nullptr;      ///< of `$(…)`
  std::vector<Text> launchers; ///< in front of the shell that is run
  Reason branch;               ///< why it is not known whether this is run
  std::vector<std::map<std::string, std::optional<Variable>> *> scopes;
  unsigned captures = 0; ///< `$(…)` that are open
  unsigned depth = 0;    ///< of calls, expansions and commands
  size_t steps = 0, expanded = 0, copied = 0;
};

} // namespace accel::config::shell

#endif // ACCEL_LIB_CONFIG_SHELL_RUN_H
