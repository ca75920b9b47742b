// What the op groups of nn share: the tensor types and the op classes.

#ifndef ACCEL_NN_BASE_TD
#define ACCEL_NN_BASE_TD

include "dialects/NN/NNAttrs.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "mlir/IR/BuiltinAttributes.td"
include "mlir/IR/SymbolInterfaces.td"

def NN_Float : AnyTypeOf<[F64, F32, F16, BF16, F8E4M3FN, F8E5M2]>;
def NN_Integer : AnyTypeOf<[I64, I32, I16, I8, I1, UI64, UI32, UI16, UI8]>;
def NN_Index : AnyTypeOf<[I64, I32]>;
def NN_Element : AnyTypeOf<[NN_Float, NN_Integer]>;
// Numbers of a few bits, or without zero, or without minus zero, which are cast
// and moved, not computed with.
def NN_Code : AnyTypeOf<[F8E8M0FNU, F8E4M3FNUZ, F8E5M2FNUZ, F6E2M3FN, F6E3M2FN, F4E2M1FN,
                         I<4>, I<2>, UI<4>, UI<2>]>;
def NN_Stored : AnyTypeOf<[NN_Float, NN_Integer, NN_Code]>;

class NN_Ranked<Type element, string what>
    : Type<And<[TensorOf<[element]>.predicate, HasStaticShapePred]>, what,
           "::mlir::RankedTensorType">;
def NN_Tensor : NN_Ranked<NN_Element, "statically shaped tensor of numbers to compute with">;
def NN_StoredTensor : NN_Ranked<NN_Stored, "statically shaped tensor">;
def NN_FloatTensor : NN_Ranked<NN_Float, "statically shaped tensor of floats">;
def NN_IndexTensor : NN_Ranked<NN_Index, "statically shaped tensor of i64 or i32">;
def NN_IntegerTensor : NN_Ranked<NN_Integer, "statically shaped tensor of integers">;
def NN_CodeTensor : NN_Ranked<UI8, "statically shaped tensor of ui8">;
def NN_BoolTensor : NN_Ranked<I1, "statically shaped tensor of i1">;

class NN_Op<string mnemonic, list<Trait> traits = []>
    : Op<NN_Dialect, mnemonic, !listconcat([Pure], traits)>;

/// An op whose result type follows from its operands and attributes. The
/// inference is `inferReturnTypes` in NN<Group>.cpp, or `inference`, its body;
/// verification compares the written type with it, encodings aside.
class NN_InferredOp<string mnemonic, list<Trait> traits = [], string inference = "">
    : NN_Op<mnemonic, !listconcat([InferTypeOpAdaptorWithIsCompatible], traits)> {
  let extraClassDefinition = [{
    bool $cppClass::isCompatibleReturnTypes(::mlir::TypeRange inferred,
                                            ::mlir::TypeRange actual) {
      return ::accel::nn::sameShapesAndElements(inferred, actual);
    }
  }] # !if(!empty(inference), "", [{
    ::llvm::LogicalResult $cppClass::inferReturnTypes(
        ::mlir::MLIRContext *context, ::std::optional<::mlir::Location> loc,
        Adaptor adaptor, ::llvm::SmallVectorImpl<::mlir::Type> &types) {
      ::mlir::ValueRange operands = adaptor.getOperands();
      }] # inference # [{
    }
  }]);
}

// Bodies of inferences. Operands have one element type, or all from the second
// on; the result has it too, or is of i1.
defvar NN_InferSame = "return inferSame(loc, operands, 0, types);";
defvar NN_InferSameFrom1 = "return inferSame(loc, operands, 1, types);";
defvar NN_InferBool = "return inferBool(loc, operands, types);";

#endif
