// What two lists of the user's patterns say of a name, of which the first wins:
// `--trainable` and `--frozen`.

#ifndef ACCEL_LIB_ONNX_NAMEPATTERNS_H
#define ACCEL_LIB_ONNX_NAMEPATTERNS_H

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Location.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/GlobPattern.h"
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace accel::onnxio {

/// Glob patterns (`*`, `?`, `[a-z]`) over names of parameters.
class NamePatterns {
public:
  /// What messages call the lists.
  struct Flags {
    llvm::StringRef yes = "--trainable", no = "--frozen";
  };

  /// Fails, with an error at `loc`, on a pattern that is none.
  static mlir::FailureOr<NamePatterns> compile(llvm::ArrayRef<std::string> yes,
                                               llvm::ArrayRef<std::string> no,
                                               mlir::Location loc, Flags flags);
  static mlir::FailureOr<NamePatterns> compile(llvm::ArrayRef<std::string> yes,
                                               llvm::ArrayRef<std::string> no,
                                               mlir::Location loc) {
    return compile(yes, no, loc, Flags());
  }

  /// What the patterns say of what has these names: yes (which wins), no, or
  /// nothing. Remembers which patterns have matched something; `decisive`, if
  /// not null, gets the first that says so.
  std::optional<bool> decide(llvm::ArrayRef<llvm::StringRef> names,
                             std::string *decisive = nullptr);

  /// Fails, with an error at `loc`, where a pattern has matched nothing so far;
  /// the message lists those of `names` that come nearest.
  mlir::LogicalResult checkAllMatched(llvm::ArrayRef<llvm::StringRef> names,
                                      mlir::Location loc) const;

private:
  struct Pattern {
    std::unique_ptr<std::string> text; ///< which `glob` refers to
    llvm::GlobPattern glob;
    bool isYes;
    bool matched;
  };
  std::vector<Pattern> patterns;
  Flags flags;
};

/// Up to three of `names`, quoted, the nearest to `name` first.
std::string nearestNames(llvm::StringRef name,
                         llvm::ArrayRef<llvm::StringRef> names);

} // namespace accel::onnxio

#endif // ACCEL_LIB_ONNX_NAMEPATTERNS_H
