// Where a target remembers what took time to find out: one file per thing, in a
// folder of the user's own. What is remembered decides what a model computes,
// so a file is believed only if it is, byte for byte, what was kept there for
// the very same inputs; anything else is thrown away and made again.
//
// An entry is a header of fixed length, then the content:
//
//   acc cache 1 | inputs SHA-256 | length, 16 hexadecimal digits
//   | content SHA-256                                   (a line each)
//
// SHA-256 and not the XXH3 of the executable's sections: an entry stands for
// inputs that nobody compares, so two of them must not meet by chance.

#ifndef ACCEL_LIB_TARGET_CPU_CACHE_H
#define ACCEL_LIB_TARGET_CPU_CACHE_H

#include "mlir/Support/LLVM.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/ADT/Twine.h"
#include <functional>
#include <optional>
#include <string>

namespace accel::cpu {

/// $ACCEL_CACHE, else $XDG_CACHE_HOME/acc, else ~/.cache/acc; empty where there
/// is no home. The folder need not exist.
std::string getCacheFolder();

/// The things of one kind in the folder. Several processes may use it at once:
/// an entry appears as a whole or not at all. Not being able to keep something
/// is no error, and being refused the folder neither: `warn` is told, once,
/// what was expected and found and what to do.
class Cache {
public:
  using Warn = std::function<void(const llvm::Twine &)>;

  /// `kind` ends the names of the files, `what` names the things in messages
  /// (a plural). An empty `folder` keeps nothing.
  Cache(std::string folder, llvm::StringRef kind, llvm::StringRef what,
        Warn warn);
  ~Cache();
  Cache(const Cache &) = delete;
  Cache &operator=(const Cache &) = delete;

  /// SHA-256, in hexadecimal digits.
  static std::string hash(llvm::StringRef bytes);

  /// The bytes that were kept for these inputs, read once: what is returned is
  /// what was checked. None where nothing was kept; where what is there cannot
  /// be believed it is discarded.
  std::optional<std::string> find(llvm::StringRef inputs);
  /// Keeps bytes: on the disk before they have a name. Whether they are kept:
  /// where a folder was named and nothing can be written there, a process says
  /// so once.
  bool insert(llvm::StringRef inputs, llvm::StringRef content);
  /// Whether the folder was there and may not be used, as `warn` was told.
  bool isRefused() const { return refused; }
  /// Removes what is kept for these inputs, and warns that it was not
  /// `expected`, but `found`.
  void discard(llvm::StringRef inputs, const llvm::Twine &expected,
               const llvm::Twine &found);

private:
  bool open(bool create);
  bool fail(int error) const;
  std::string identify(llvm::StringRef inputs) const;
  void removeAbandoned() const;

  std::string folder, kind, what;
  Warn warn;
  int descriptor = -1; ///< of the folder, once it was checked
  bool refused = false;
};

} // namespace accel::cpu

#endif // ACCEL_LIB_TARGET_CPU_CACHE_H
