// Who says what about each name that a program is decided by.

#ifndef ACCEL_LIB_CONFIG_LEDGER_H
#define ACCEL_LIB_CONFIG_LEDGER_H

#include "Config.h"
#include "Settings.h"
#include <map>

namespace accel::config {

/// Claims of files and flags, and what they are settled to.
class Ledger {
public:
  /// A file or a flag says so.
  void claim(llvm::StringRef name, std::string value, Origin origin);
  void claim(llvm::StringRef name, const Setting &setting) {
    claim(name, setting, setting.value);
  }
  /// The same, where a key's value stands for another one.
  void claim(llvm::StringRef name, const Setting &setting, std::string value);
  /// What holds if nobody says anything; the first suggestion counts.
  void suggest(llvm::StringRef name, std::string value, Origin::Kind kind,
               std::string detail);

  /// Whether a file or a flag has said anything of it.
  bool isClaimed(llvm::StringRef name) const;

  /// What `--set` has said of it; null if it said nothing.
  const std::string *findSet(llvm::StringRef name) const;

  /// What `name` comes to: `--set`, or what all others say alike, or the
  /// suggestion; null if there is none. Two that disagree are an error, once:
  /// then there is none.
  llvm::Expected<const Resolved *> settle(llvm::StringRef name);

  /// What `--set` has beaten so far.
  std::vector<Override> takeOverrides() { return std::move(overrides); }

private:
  struct Entry {
    std::vector<Resolved> claims;
    std::optional<Resolved> suggestion, settled;
    bool refused = false;
  };
  std::map<std::string, Entry> entries;
  std::vector<Override> overrides;
};

/// True if both spell the same number, or are the same text.
bool sameValue(llvm::StringRef a, llvm::StringRef b);

} // namespace accel::config

#endif // ACCEL_LIB_CONFIG_LEDGER_H
