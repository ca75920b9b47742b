// Finds how an initializer that the exporter's optimizer computed comes out of
// the parameter it was computed from. Two witnesses must agree: the names of
// the calls that are gone say what may have been done, the bytes say what was.
// Private to lib/Onnx.
#ifndef ACCEL_LIB_ONNX_RESTOREFOLDED_H
#define ACCEL_LIB_ONNX_RESTOREFOLDED_H

#include "ParameterBuilder.h"
#include "TracedProgram.h"

namespace accel::onnxio {

/// What the names of calls allow: elements moved or picked, multiplied by one
/// number, squared; or repeated along dimensions, and nothing else.
struct FoldedSteps {
  bool layout = false, scale = false, square = false, repeat = false;
};

/// What may have been done on the way to `folded`, an operand of `call`: by the
/// names of the calls that are gone, or, of a value inside `call`, by its
/// operator. Nothing where one of them may do anything else (`detach` stops
/// gradients, `relu` passes some on), or where other inputs took part.
std::optional<FoldedSteps> stepsOfNames(const TracedProgram &program,
                                        const Call &call,
                                        const onnx::TensorProto &folded);

/// Steps from `parameter` to `folded`, equal bit for bit: a permutation, then a
/// slice of one dimension, then a reshape, then one multiplication (f32 only);
/// or repetition alone, as NumPy broadcasts. Nothing where none of the allowed
/// fits, or where several that differ do, as they do where elements repeat.
std::optional<std::vector<ParameterStep>>
deriveFrom(const OnnxFile &file, const onnx::TensorProto &parameter,
           const onnx::TensorProto &folded, const FoldedSteps &allowed);

/// Steps from `table`, a matrix, to `folded`, whose elements along one
/// dimension are rows of it. Nothing where rows that are looked up are equal,
/// so that either may be meant, or zero, as the row of a padding is, which is
/// not trained.
std::optional<std::vector<ParameterStep>>
deriveRows(const OnnxFile &file, const onnx::TensorProto &table,
           const onnx::TensorProto &folded);

/// Whether the steps, which `undoFolds` has found, make `folded` of `parameter`
/// bit for bit.
bool isFoldedBy(const OnnxFile &file, const onnx::TensorProto &parameter,
                const onnx::TensorProto &folded,
                llvm::ArrayRef<ParameterStep> steps);

/// Whether any of the allowed steps make `folded` of `source`.
bool mayDerive(const OnnxFile &file, const onnx::TensorProto &source,
               const onnx::TensorProto &folded, const FoldedSteps &allowed);

/// How the parameter called `parameter` comes out of `folded`, the only thing
/// in the file that was computed from it, and an operand of `node`. The names
/// of the calls that are gone must say what was done, and leave one inverse;
/// the line that made `node` must say what was added, or by what it was
/// multiplied, and that must be exact to the last bit when it is done again.
/// What was widened to f64 must hold what f32 holds and no smaller type does.
std::optional<FoldedParameter> undoFolds(const TracedProgram &program,
                                         const onnx::NodeProto &node,
                                         const onnx::TensorProto &folded,
                                         llvm::StringRef parameter);

} // namespace accel::onnxio

#endif // ACCEL_LIB_ONNX_RESTOREFOLDED_H
