// A shell script as a tree. Words stay as they are written: what their quotes
// and their '$' mean is decided when the command is run.

#ifndef ACCEL_LIB_CONFIG_SHELL_SYNTAX_H
#define ACCEL_LIB_CONFIG_SHELL_SYNTAX_H

#include "lib/Config/Document.h"

#include <memory>

namespace accel::config::shell {

/// How deep commands, quotes, numbers and conditions may nest.
inline constexpr unsigned kDeepest = 32;

struct Word {
  std::string text;
  unsigned line = 0;
};

/// `NAME=WORD`, `NAME+=WORD`, `NAME[INDEX]=WORD`, `NAME=(WORDS)`; of a
/// declaration `NAME` alone too.
struct Assignment {
  std::string name;
  std::optional<std::string> index;
  bool adds = false, isArray = false, isBare = false;
  Word value;
  std::vector<Word> items; ///< of an array
  unsigned line = 0;
};

/// `<<WORD` with the lines that follow; `<<<WORD`.
struct Here {
  std::string text;
  bool isQuoted = false; ///< nothing in it is expanded
};

struct Redirection {
  std::string op; ///< ">", ">>", "<", "<<", "<<<", "&>", ">&" …
  int number = -1;
  Word target;
  std::shared_ptr<Here> here;
};

struct AndOr;
using List = std::vector<AndOr>;

struct Branch {
  std::vector<Word> patterns; ///< of `case`
  List condition, body;
  bool falls = false; ///< `case` goes on with the next one: ;& and ;;&
};

struct Command {
  enum class Kind {
    Simple,
    Group,      ///< { … }: branches[0].body
    Subshell,   ///< ( … ): the same
    If,         ///< branches; an else has no condition
    For,        ///< name over words
    Count,      ///< for (( a; b; c )): words are these three
    While,      ///< branches[0]; `until` if negated
    Case,       ///< words[0] against branches
    Function,   ///< name; branches[0].body
    Test,       ///< [[ words ]]
    Arithmetic, ///< (( words[0] ))
  };
  Kind kind = Kind::Simple;
  unsigned line = 0;
  std::vector<Assignment> assignments;
  std::vector<Word> words;
  std::vector<Redirection> redirections;
  std::string name;
  std::vector<Branch> branches;
  bool isNegated = false;
  /// `for` without `in`, which goes over the arguments.
  bool isOverArguments = false;
};

struct Pipeline {
  bool isNegated = false;
  std::vector<std::shared_ptr<const Command>> commands;
};

/// Pipelines that `&&` and `||` join.
struct AndOr {
  std::vector<Pipeline> pipelines;
  std::vector<bool> isOr; ///< of what joins each to the one before; [0] unused
};

/// Parses `text`, whose first line is `line` of `name`; with `isOneLine` all of
/// it is (what `eval` gets). Refuses, with the line, what Bash does not take:
/// quotes, brackets and commands that are not closed; nesting deeper than
/// kDeepest.
llvm::Expected<List> parse(llvm::StringRef text, llvm::StringRef name,
                           unsigned line = 1, bool isOneLine = false);

/// The letters that a name consists of.
bool isNameLetter(char c);

/// Of a text at whose begin a quote, `$(`, `${` or '`' stands how long that is;
/// 0 where nothing closes it.
size_t lengthOfQuoted(llvm::StringRef text);

} // namespace accel::config::shell

#endif // ACCEL_LIB_CONFIG_SHELL_SYNTAX_H
