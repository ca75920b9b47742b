// A program to be tried, and its text.

#ifndef ACCEL_TEST_FUZZ_PROGRAMS_PROGRAM_H
#define ACCEL_TEST_FUZZ_PROGRAMS_PROGRAM_H

#include "Layout.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

namespace accel::fuzz {

struct Program {
  mlir::OwningOpRef<mlir::ModuleOp> module; ///< in phase `nn`
  /// No sample meets another one: the loss is additive, and micro-batches are
  /// not to be refused.
  bool keepsRows = false;
  /// It is written as an ONNX file, and what is compiled is imported from that.
  bool viaOnnx = false;
  Update update;
  Sizes sizes;

  Program clone() const;
};

/// The program that a seed stands for, one of many.
Program makeProgram(mlir::MLIRContext *context, uint64_t seed, uint64_t number);
/// The layouts that it is tried in.
std::vector<Layout> makeLayouts(const Program &program, uint64_t seed,
                                uint64_t number, unsigned count);

/// Text that acc-opt reads, with the flags in a comment.
std::string print(const Program &program, const Layout &layout,
                  llvm::StringRef comment = "");
/// Reads that text again. A null module, and an error on stderr, if it is none.
Program parse(llvm::StringRef text, Layout &layout, mlir::MLIRContext *context);

} // namespace accel::fuzz

#endif // ACCEL_TEST_FUZZ_PROGRAMS_PROGRAM_H
