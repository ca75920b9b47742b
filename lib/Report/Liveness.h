// Which buffers of a plan hold something at which moment.

#ifndef ACCEL_LIB_REPORT_LIVENESS_H
#define ACCEL_LIB_REPORT_LIVENESS_H

#include "dialects/Plan/Plan.h"
#include "llvm/ADT/MapVector.h"

namespace accel::report {

/// What a buffer holds, where its role does not say it.
enum class Content {
  Own,            ///< what its role says
  GatheredWeight, ///< a weight of a unit that other ranks have given their
                  ///< pieces of
  SecondaryCopy,  ///< this rank's part of what its group keeps of a weight
  WholeGradient,  ///< of a unit, before ranks have scattered it
  Gradient        ///< as the update reads it
};

/// The lives of a program's buffers over one call of its main entry, in the
/// order of its commands. What another stream uses is alive until the first
/// stream has waited for it. What is read before it is written, or outlives the
/// call, lives throughout.
class Liveness {
public:
  static Liveness compute(plan::ProgramOp program);

  struct Held {
    plan::BufferOp buffer;
    Content content;
  };
  /// What is alive in an arena at the moment when that is most.
  llvm::SmallVector<Held> getPeak(plan::Space space) const;
  /// The most units of which such a thing is alive at once.
  int64_t getUnitsInFlight(Content content) const;
  /// The most bytes of such a thing that are alive at once.
  int64_t getMostBytes(Content content) const;
  /// Of all copies; what lies between them is no part of it.
  static int64_t getBytes(plan::BufferOp buffer);

private:
  friend class Walk;
  struct Life {
    int64_t first, last;
    bool holds(int64_t moment) const {
      return first <= moment && moment <= last;
    }
  };
  /// What a command has left in a buffer, until another writes it.
  struct Holding : Life {
    Content content = Content::Own;
    mlir::StringAttr unit;
    bool inPlace = false; ///< made of what was there before
  };
  struct Lives {
    llvm::SmallVector<Life, 1> lives; ///< several where each micro-batch
                                      ///< writes the buffer anew
    llvm::SmallVector<Holding, 2> holdings;
  };
  /// Of buffers with bytes of their own.
  llvm::MapVector<mlir::Operation *, Lives> buffers;
  int64_t moments = 0;
};

/// What micro-batches that have begun and not ended keep for what is to come.
struct KeptInFlight {
  int64_t microBatches = 1; ///< as many as are in flight together, at most
  int64_t bytesEach = 0;    ///< activations that one of them keeps
};
KeptInFlight countKept(plan::ProgramOp program);

/// The ONNX nodes that a buffer belongs to, as messages name them.
std::string describeNode(mlir::Operation *op);

} // namespace accel::report

#endif // ACCEL_LIB_REPORT_LIVENESS_H
