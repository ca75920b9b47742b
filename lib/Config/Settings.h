// The settings: the names that a program is decided by, whoever says them.

#ifndef ACCEL_LIB_CONFIG_SETTINGS_H
#define ACCEL_LIB_CONFIG_SETTINGS_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/Error.h"

namespace accel::config {

/// What files, flags and `--set` can say, by the one name it has among them.
struct NamedSetting {
  /// Whose work it is to obey: what divides ranks and batch is settled here,
  /// the update (`autodiff::parseUpdateRule`) checks its own, and a pass has an
  /// option for it (lib/Driver/Settings.cpp).
  enum class Reader { Layout, Update, Pass };

  llvm::StringLiteral name;
  Reader reader;
  /// What `--set` takes, as `Key::type` has it, one of `bool`, `int>=N` and
  /// `A,B,C`; empty, or `name` of a pass's: whoever reads it says.
  llvm::StringLiteral type;
  /// Of a pass's: what it is, for the help of `--set`.
  llvm::StringLiteral help;
};

/// All of them, in the order in which they are printed.
llvm::ArrayRef<NamedSetting> namedSettings();
/// Null if there is none of that name; all keys of groups are of one row.
const NamedSetting *findSetting(llvm::StringRef name);

/// What is wrong with `value` as that setting: "an integer of at least 1", what
/// was expected; empty if it is of its type.
std::string describeMismatch(const NamedSetting &setting,
                             llvm::StringRef value);

/// The settings of passes, for the help of `--set`, a line each:
/// `zero_stage=0,1,2,3: how …`.
std::string describePassSettings();

/// "adamw, adam, … or schedule_free_adamw", for `--optimizer`.
std::string describeOptimizers();

} // namespace accel::config

#endif // ACCEL_LIB_CONFIG_SETTINGS_H
