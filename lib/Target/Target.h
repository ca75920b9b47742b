// A target: what executes a plan, and all that a plan made for it has otherwise
// than one made for another. Phases, lib/Plan and lib/Emit ask this interface
// and name no target; docs/AddATarget.md says how one is added.

#ifndef ACCEL_LIB_TARGET_TARGET_H
#define ACCEL_LIB_TARGET_TARGET_H

#include "dialects/Plan/Plan.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include <optional>
#include <string>
#include <vector>

namespace accel {

/// What a command of a product can do beside the product, if the target's
/// library can; otherwise kernels do it.
enum class Epilogue {
  Bias,      ///< adds a row to every row of the result
  Widen,     ///< writes f32 of a product of bf16
  Accumulate ///< adds to what is there, a state's bytes
};

/// Up to where ops are fused.
struct FusionLimits {
  /// Ops of one kernel, and how often its code computes an element of them:
  /// once for each index at which what reads it wants one.
  size_t mostMembers, mostElements;
  /// A reduction is kept apart from kernels that would leave it fewer than
  /// `fewRows` rows, if it has at least so many elements: it is worth sharing
  /// between what works at once.
  int64_t worthSharing, fewRows;
};

/// What a target makes of a plan for the file. A section's name is the target's
/// own; the file puts it behind the prefix that marks code.
struct Code {
  struct Section {
    std::string name, bytes;
  };
  std::vector<Section> sections;
  /// What the code needs of the machine, in words of the target's device.
  std::vector<std::string> features;
};

/// One target for one compilation. Immutable: every question has one answer.
class Target {
public:
  virtual ~Target() = default;

  /// As the user gave it. Up to a ':' it is the name of the runtime's device.
  virtual std::string getText() const = 0;
  /// What bodies and segments of its plans say executes them. It is called what
  /// the target is.
  virtual plan::Engine getEngine() const = 0;

  //===--- Which commands -------------------------------------------------===//

  virtual FusionLimits getFusionLimits() const = 0;
  virtual bool hasEpilogue(Epilogue epilogue) const = 0;
  /// How many of a kernel's `rows` are handed out at once; `bytes` is what all
  /// of them move. `kernel` has the ops that were fused.
  virtual int64_t chooseGrid(mlir::func::FuncOp kernel, int64_t rows,
                             int64_t bytes) const = 0;

  /// Whether a segment that holds the command can be captured once and replayed
  /// in every turn. Of collectives and messages it says so for the device's
  /// streams alone: the communication has its word at load.
  virtual bool isCapturable(mlir::Operation *command) const = 0;

  //===--- Which bytes ----------------------------------------------------===//

  /// Where buffers of a role lie that no other rank reads or writes.
  virtual plan::Space getSpace(plan::Role role) const = 0;
  /// Every buffer's offset in a space is a multiple of this.
  virtual int64_t getAlignment(plan::Space space) const = 0;
  /// Where bytes lie that other ranks read or write.
  virtual plan::Space getExchangeSpace() const = 0;
  /// Where the inputs of all micro-batches lie from the start of a call on, and
  /// what it gives until its end, so that no file stands between what can be
  /// captured: the bodies copy from there and to there. None: files are read
  /// and written between the bodies.
  virtual std::optional<plan::Space> getFileSpace() const = 0;
  /// How many commands one capture holds at most: the turns of a loop are
  /// captured as one up to there. 0: each turn for itself.
  virtual int64_t getMostCaptured() const = 0;
  /// Whether copies between the device's memory and the host's take no time of
  /// those who compute: a device has engines for them.
  virtual bool copiesBesideComputation() const = 0;
  /// How many queues collectives and messages of a rank stand in, whatever
  /// their streams: one is done when all that was enqueued before it in its
  /// queue is, as where each holds the device until its peers come. The streams
  /// share them in turn. 0: nothing holds up but streams and events.
  virtual int64_t getExchangeQueues() const = 0;
  /// Writes down how each command of a program is computed (its `form`), and
  /// adds the buffers that takes: scratch, packed weights. Buffers have no
  /// offsets yet.
  virtual mlir::LogicalResult chooseForms(plan::ProgramOp program) const = 0;
  /// Bytes that a rank's process and libraries hold of a space, beside the
  /// arena there.
  virtual int64_t estimateReserve(plan::ProgramOp program,
                                  plan::Space space) const = 0;

  //===--- The file -------------------------------------------------------===//

  /// The name by which the target's code has what a kernel, an attention or its
  /// gradient calls.
  virtual std::string getSymbol(mlir::Operation *command,
                                mlir::SymbolTableCollection &symbols) const = 0;
  /// Compiles all that the commands of finished plans call in bodies of its
  /// engine. Errors are located at the op that cannot be compiled.
  virtual mlir::FailureOr<Code> compile(mlir::ModuleOp plans) const = 0;
};

} // namespace accel

#endif // ACCEL_LIB_TARGET_TARGET_H
