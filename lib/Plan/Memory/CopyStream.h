// A stream of copies beside the commands of a body: what it does, behind whom,
// and who waits for it.

#ifndef ACCEL_LIB_PLAN_MEMORY_COPYSTREAM_H
#define ACCEL_LIB_PLAN_MEMORY_COPYSTREAM_H

#include "dialects/Plan/Plan.h"

#include <map>
#include <vector>

namespace accel::plan {

/// Collects transfers in the order in which the stream does them, then writes
/// them into the body.
class CopyStream {
public:
  /// An op of the body, and the stream that it is a command of.
  struct User {
    mlir::Operation *op;
    llvm::StringRef stream;
  };

  struct Transfer {
    /// Done before, each with all that is before it on its stream. Those of a
    /// stream come in the order of the body, from transfer to transfer.
    llvm::SmallVector<User, 1> behind;
    ViewAttr from, to; ///< null: nothing but wait
    /// A command of the body, which the stream does where it stands: `behind`
    /// is that command.
    CopyOp moved;
    mlir::Location loc;
    bool isAwaited = false;
  };

  /// Ops are inserted by `pass`, whose short name is `name`.
  CopyStream(BodyOp body, llvm::StringRef name, llvm::StringRef pass)
      : body(body), name(name), pass(pass) {}

  /// Appends one; its number.
  size_t add(Transfer transfer);
  size_t size() const { return transfers.size(); }

  /// Has `user` wait for a transfer, which is before it in the stream's order,
  /// and so for those before.
  void await(size_t transfer, const User &user);

  /// Writes the stream. Each op stands where a device can be told of it: behind
  /// the records that it waits for. The stream begins when all before the body
  /// has ended, and the body ends when the stream has.
  void write();

private:
  std::string nameOf(llvm::StringRef what, size_t number) const {
    return (name + "_" + what + "_" + llvm::Twine(number)).str();
  }
  void awaitMoved();

  BodyOp body;
  llvm::StringRef name, pass;
  std::vector<Transfer> transfers;
  std::map<llvm::StringRef, size_t> known; ///< what streams have waited for
};

} // namespace accel::plan

#endif // ACCEL_LIB_PLAN_MEMORY_COPYSTREAM_H
