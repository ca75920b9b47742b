// The plan on value numbers: each command writes what it computes to the bytes
// where it computes it.

#ifndef ACCEL_LIB_EQUIVALENCE_PLAN_REPLAY_H
#define ACCEL_LIB_EQUIVALENCE_PLAN_REPLAY_H

#include "Copies.h"
#include "EachMicroBatch.h"
#include "StreamOrder.h"
#include <map>

namespace accel::equivalence {

/// Executes one program, and holds what it gives against the local values of
/// its entries, by kind.
class PlanReplay {
public:
  PlanReplay(mlir::ModuleOp module, plan::ProgramOp program, Meaning &meaning,
             std::map<mlir::StringRef, LocalValues> &entries);
  mlir::LogicalResult run();

private:
  /// The bytes of a state, in which it is kept and saved.
  struct Home {
    Place place;
    PieceKey piece;
    plan::ReadOp read;
  };

  mlir::LogicalResult runLoad(plan::EntryOp entry);
  mlir::LogicalResult runSegment(plan::SegmentOp segment, bool inLoop);
  mlir::LogicalResult runCall(plan::EntryOp entry);
  /// A turn of a loop, for all of them: it begins with states that nobody knows
  /// and ends with those that the tasks make of them.
  mlir::LogicalResult runLoop(plan::LoopOp loop,
                              const LocalValues::Section &section);
  mlir::LogicalResult execute(plan::CommandOpInterface each);
  mlir::LogicalResult execute(plan::GemmOp gemm);
  mlir::LogicalResult execute(plan::ConvOp conv);
  mlir::LogicalResult execute(plan::DealRowsOp deal);
  mlir::LogicalResult execute(plan::GroupedGemmOp gemm);
  mlir::LogicalResult execute(plan::GroupedGemmGradOp grad);
  mlir::LogicalResult execute(plan::AttentionOp attention);
  mlir::LogicalResult execute(plan::AttentionGradOp grad);
  mlir::LogicalResult executeAttention(mlir::OperationName name,
                                       mlir::Attribute attributes,
                                       llvm::ArrayRef<plan::ViewAttr> reads,
                                       unsigned unmasked,
                                       llvm::ArrayRef<plan::ViewAttr> writes,
                                       std::optional<plan::ViewAttr> scratch);
  mlir::LogicalResult execute(plan::KernelOp kernel);
  /// The results of a kernel on parts of what its arguments lie in, as parts of
  /// what the local program computes of all of that; false if it is not that.
  bool evaluateTile(mlir::func::FuncOp function,
                    llvm::ArrayRef<plan::ViewAttr> views,
                    llvm::ArrayRef<TermId> arguments,
                    llvm::SmallVectorImpl<TermId> &results);
  /// A function that computes element by element, on `count` elements instead
  /// of the `part` that its types say.
  void evaluateWhole(mlir::func::FuncOp function,
                     llvm::ArrayRef<TermId> arguments, int64_t part,
                     int64_t count, llvm::SmallVectorImpl<TermId> &results);
  mlir::LogicalResult execute(plan::CollectiveOp collective);
  mlir::LogicalResult execute(plan::CopyOp copy);
  mlir::LogicalResult execute(plan::FillOp fill);
  mlir::LogicalResult execute(plan::PackOp pack);
  mlir::LogicalResult execute(plan::CoordinateOp coordinate);
  mlir::LogicalResult execute(plan::ReadOp read);
  mlir::LogicalResult execute(plan::WriteOp write);
  mlir::LogicalResult execute(plan::SendOp send);
  mlir::LogicalResult execute(plan::RecvOp recv);
  mlir::LogicalResult checkEach(plan::ViewAttr view, mlir::Operation *op);
  /// Holds what the plan writes against what a task gives on a micro-batch.
  mlir::LogicalResult takeOutput(plan::WriteOp write, MicroBatch microBatch,
                                 TermId term);
  mlir::LogicalResult checkGroup(plan::GroupOp group);
  mlir::FailureOr<TermId> readPacked(plan::GemmOp gemm, plan::ViewAttr packed);
  ValueId getPacked(mlir::Attribute form, llvm::ArrayRef<int64_t> shape,
                    TermId elements, int64_t bytes, mlir::Operation *op);

  /// Where a view is; with `ofNumber` that of the micro-batch at hand, if that
  /// is a number, else wherever those of all of them are.
  mlir::FailureOr<Place> locate(plan::ViewAttr view, bool ofNumber = true);
  mlir::FailureOr<TermId> read(plan::ViewAttr view);
  mlir::FailureOr<TermId> findInput(TermId term);
  mlir::LogicalResult write(plan::ViewAttr view, TermId term);
  mlir::LogicalResult overwrite(std::optional<plan::ViewAttr> scratch);
  /// Forgets what lies at a place.
  mlir::LogicalResult release(const Place &place);
  /// Forgets what others have at a place that is written: it has the bytes of
  /// all copies, or some of those of some.
  mlir::LogicalResult forgetOthers(const Place &place);
  /// What has the elements at a place.
  Memory &at(const Place &place) {
    return place.copies ? copies.get() : memory;
  }
  /// Nothing that the command writes may be what it reads or writes elsewhere,
  /// but for pairs (input, output) that `mayShare` allows.
  mlir::LogicalResult checkApart(
      llvm::ArrayRef<plan::ViewAttr> reads,
      llvm::ArrayRef<plan::ViewAttr> writes,
      llvm::function_ref<bool(unsigned input, unsigned output)> mayShare = {});

  mlir::LogicalResult placeConstants();
  mlir::LogicalResult beginEntry();
  mlir::FailureOr<Home *> findHome(mlir::StringAttr state);
  TermId getOther(mlir::StringAttr name, const Home &home);
  mlir::LogicalResult checkState(mlir::StringAttr name, const Home &home,
                                 llvm::StringRef when);
  mlir::LogicalResult checkOutputs();
  mlir::InFlightDiagnostic refuse(mlir::Operation *op);
  void noteForeign(unsigned known);
  /// Whether a value was computed to see whether somebody computes it.
  bool isTried(ValueId id) const;

  mlir::ModuleOp module;
  plan::ProgramOp program;
  Meaning &meaning;
  Terms &terms;
  std::map<mlir::StringRef, LocalValues> &entries;
  LocalValues *local = nullptr; ///< of the entry at hand
  Memory memory;                ///< but for copies
  Copies copies;
  EachMicroBatch ofEach;
  /// What was read of each micro-batch at once, and who has read it: what of
  /// it is one micro-batch's is the input that this one has.
  llvm::DenseMap<ValueId, plan::ReadOp> readOfEach;
  mlir::StringAttr microBatchAxis;
  llvm::DenseMap<mlir::StringAttr, plan::BufferOp> buffers;
  llvm::DenseMap<mlir::StringAttr, plan::BodyOp> bodies;
  llvm::DenseMap<mlir::StringAttr, mlir::func::FuncOp> functions;
  llvm::DenseMap<std::pair<mlir::Operation *, unsigned>, bool> inPlace;
  llvm::MapVector<mlir::StringAttr, Home> homes;
  bool loading = false;
  mlir::Operation *command = nullptr; ///< that is being executed
  /// The first command that computes what the local program does not.
  mlir::Operation *foreign = nullptr;
  /// Values that no command computes: what tiles are not parts of.
  llvm::SmallVector<std::pair<ValueId, ValueId>> tried;
};

} // namespace accel::equivalence

#endif // ACCEL_LIB_EQUIVALENCE_PLAN_REPLAY_H
