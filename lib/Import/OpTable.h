// The table of operators: which function imports which ONNX operator from which
// opset on. Private to the library; each lib/Import/Ops/<Group>.cpp gives its
// rows.
#ifndef ACCEL_LIB_IMPORT_OPTABLE_H
#define ACCEL_LIB_IMPORT_OPTABLE_H

#include "NodeImporter.h"

namespace accel::import {

/// One row: `function` imports `name` of `domain` as defined from opset `since`
/// on, up to the next row of that name.
struct OpRow {
  llvm::StringLiteral domain;
  llvm::StringLiteral name;
  int64_t since;
  /// Operands that must be there, and how many there may be (-1: any number).
  int minOperands;
  int maxOperands;
  mlir::LogicalResult (*function)(NodeImporter &importer);
  /// Whether operands may be sequences of tensors.
  bool takesSequences = false;
};

llvm::ArrayRef<OpRow> elementwiseOps();
llvm::ArrayRef<OpRow> activationOps();
llvm::ArrayRef<OpRow> trigonometricOps();
llvm::ArrayRef<OpRow> linearOps();
llvm::ArrayRef<OpRow> convolutionOps();
llvm::ArrayRef<OpRow> poolingOps();
llvm::ArrayRef<OpRow> einsumOps();
llvm::ArrayRef<OpRow> normOps();
llvm::ArrayRef<OpRow> channelNormOps();
llvm::ArrayRef<OpRow> attentionOps();
llvm::ArrayRef<OpRow> shapeOps();
llvm::ArrayRef<OpRow> blockOps();
llvm::ArrayRef<OpRow> resizingOps();
llvm::ArrayRef<OpRow> paddingOps();
llvm::ArrayRef<OpRow> indexingOps();
llvm::ArrayRef<OpRow> choosingOps();
llvm::ArrayRef<OpRow> scatteringOps();
llvm::ArrayRef<OpRow> constantOps();
llvm::ArrayRef<OpRow> reductionOps();
llvm::ArrayRef<OpRow> lossOps();
llvm::ArrayRef<OpRow> bitOps();
llvm::ArrayRef<OpRow> fourierOps();
llvm::ArrayRef<OpRow> gridSampleOps();
llvm::ArrayRef<OpRow> linearAttentionOps();
llvm::ArrayRef<OpRow> loopOps();
llvm::ArrayRef<OpRow> quantizationOps();
llvm::ArrayRef<OpRow> recurrentOps();
llvm::ArrayRef<OpRow> regionOps();
llvm::ArrayRef<OpRow> rotaryOps();
llvm::ArrayRef<OpRow> perSampleOps();
llvm::ArrayRef<OpRow> updateOps();
llvm::ArrayRef<OpRow> controlOps();
llvm::ArrayRef<OpRow> randomOps();

/// Imports a node in `GraphImporter::decisions`, in the place of its row;
/// nothing where the row is right, since no probability is known now.
std::optional<llvm::LogicalResult> importDecision(NodeImporter &n,
                                                  const Decision &decision);

/// The rows of all of these.
llvm::ArrayRef<const OpRow *> allOps();

/// The row for the operator as opset `version` defines it, or null.
const OpRow *findOp(llvm::StringRef domain, llvm::StringRef name,
                    int64_t version);

} // namespace accel::import

#endif // ACCEL_LIB_IMPORT_OPTABLE_H
