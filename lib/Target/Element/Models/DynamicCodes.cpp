// The scalar code of dynamic codes of 8 bits. A search for the nearest of 256
// numbers takes eight dependent loads; the leading bits of a float say between
// which two neighbours it lies, and one comparison which of them is nearer.

#include "Group.h"
#include "dialects/Interfaces/ElementSource.h"
#include "dialects/NN/DynamicMap.h"
#include "dialects/NN/NN.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

#include <cmath>

using namespace mlir;
using namespace accel;

/// A bucket has the floats of one exponent and as many leading fraction bits:
/// fewer would leave two bounds in one.
static constexpr int kFractionBits = 7;
/// The first bucket also has all that is smaller, the last all from 1 on.
static constexpr int kLeastExponent = -23;
static constexpr int kBuckets = (-kLeastExponent << kFractionBits) + 1;

/// The least magnitude in a bucket.
static double getBucketStart(int bucket) {
  if (bucket == 0)
    return 0;
  int fraction = bucket & ((1 << kFractionBits) - 1);
  return std::ldexp(1 + std::ldexp(fraction, -kFractionBits),
                    kLeastExponent + (bucket >> kFractionBits));
}

/// For each bucket the lower of the two codes that its floats may have; behind
/// those of positive floats, in the signed map, those of negative ones.
static std::vector<int32_t> makeLowerCodes(bool isSigned) {
  const auto &bounds = nn::getDynamicBounds(isSigned);
  std::vector<int32_t> codes;
  for (int bucket = 0; bucket < kBuckets; ++bucket) {
    double start = getBucketStart(bucket);
    codes.push_back(llvm::count_if(
        bounds, [&](float bound) { return double(bound) < start; }));
  }
  for (int bucket = 0; isSigned && bucket < kBuckets; ++bucket) {
    double end = bucket + 1 < kBuckets
                     ? getBucketStart(bucket + 1)
                     : std::numeric_limits<double>::infinity();
    codes.push_back(llvm::count_if(
        bounds, [&](float bound) { return double(bound) <= -end; }));
  }
  return codes;
}

/// An element of a table that the kernel's code brings along.
static Value loadFromTable(ImplicitLocOpBuilder &b, const Twine &name,
                           DenseElementsAttr values, Value index) {
  Operation *module = b.getInsertionBlock()->getParentOp();
  while (!isa<ModuleOp>(module))
    module = module->getParentOp();
  Type element = values.getElementType();
  auto table = LLVM::LLVMArrayType::get(element, values.getNumElements());
  auto global = SymbolTable::lookupNearestSymbolFrom<LLVM::GlobalOp>(
      module, b.getStringAttr(name));
  if (!global) {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(cast<ModuleOp>(module).getBody());
    global = LLVM::GlobalOp::create(b, table, /*isConstant=*/true,
                                    LLVM::Linkage::Internal, name.str(), values,
                                    /*alignment=*/64);
  }
  Value base = LLVM::AddressOfOp::create(b, global);
  Value address = LLVM::GEPOp::create(b, base.getType(), element, base,
                                      ArrayRef<LLVM::GEPArg>{index},
                                      LLVM::GEPNoWrapFlags::inbounds);
  return LLVM::LoadOp::create(b, element, address);
}

template <typename T>
static DenseElementsAttr toElements(ArrayRef<T> values, Type element) {
  return DenseElementsAttr::get(
      RankedTensorType::get(static_cast<int64_t>(values.size()), element),
      values);
}

static StringRef getMapName(bool isSigned) {
  return isSigned ? "signed" : "unsigned";
}

static Value integer(ImplicitLocOpBuilder &b, int64_t value, unsigned width) {
  return arith::ConstantIntOp::create(b, value, width);
}

namespace {
struct DecodeElement
    : ElementSourceOpInterface::ExternalModel<DecodeElement,
                                              nn::DynamicDecodeOp> {
  Value emitElement(Operation *op, ElementBuilder &e,
                    ArrayRef<Value> index) const {
    bool isSigned = cast<nn::DynamicDecodeOp>(op).getIsSigned();
    Value code = e.element(op->getOperand(0), index);
    ImplicitLocOpBuilder &b = e.builder();
    Value place = arith::ExtUIOp::create(b, b.getI64Type(), code);
    Value number = loadFromTable(
        b, "dynamic_map_" + getMapName(isSigned),
        toElements<float>(nn::getDynamicMap(isSigned), b.getF32Type()), place);
    Type type = e.getComputeType(getElementTypeOrSelf(op->getResult(0)));
    return type == number.getType()
               ? number
               : Value(arith::ExtFOp::create(b, type, number));
  }
};

struct EncodeElement
    : ElementSourceOpInterface::ExternalModel<EncodeElement,
                                              nn::DynamicEncodeOp> {
  Value emitElement(Operation *op, ElementBuilder &e,
                    ArrayRef<Value> index) const {
    bool isSigned = cast<nn::DynamicEncodeOp>(op).getIsSigned();
    Value x = e.element(op->getOperand(0), index);
    ImplicitLocOpBuilder &b = e.builder();
    Value lower = loadFromTable(
        b, "dynamic_lower_codes_" + getMapName(isSigned),
        toElements<int32_t>(makeLowerCodes(isSigned), b.getI32Type()),
        emitBucket(b, x, isSigned));
    auto bounds = llvm::to_vector(nn::getDynamicBounds(isSigned));
    bounds.push_back(std::numeric_limits<float>::infinity());
    Value bound =
        loadFromTable(b, "dynamic_bounds_" + getMapName(isSigned),
                      toElements<float>(bounds, b.getF32Type()),
                      arith::ExtUIOp::create(b, b.getI64Type(), lower));
    if (!x.getType().isF32())
      bound = arith::ExtFOp::create(b, x.getType(), bound);
    Value isAbove =
        arith::CmpFOp::create(b, arith::CmpFPredicate::OGT, x, bound);
    Value code = arith::AddIOp::create(
        b, lower, arith::ExtUIOp::create(b, b.getI32Type(), isAbove));
    return arith::TruncIOp::create(b, b.getIntegerType(8), code);
  }

private:
  /// Which bucket's code to begin with, as i64. In the unsigned map negative
  /// floats, whose bits are negative integers, are in the first one.
  static Value emitBucket(ImplicitLocOpBuilder &b, Value x, bool isSigned) {
    auto type = cast<FloatType>(x.getType());
    unsigned width = type.getWidth();
    unsigned fraction = type.getFPMantissaWidth() - 1;
    Type bits = b.getIntegerType(width);
    int64_t bias = (int64_t(1) << (width - fraction - 2)) - 1;
    Value pattern = arith::BitcastOp::create(b, bits, x), magnitude = pattern;
    if (isSigned)
      magnitude = arith::AndIOp::create(
          b, pattern,
          arith::ConstantOp::create(
              b,
              b.getIntegerAttr(bits, llvm::APInt::getSignedMaxValue(width))));
    Value leading = arith::ShRSIOp::create(
        b, magnitude, integer(b, fraction - kFractionBits, width));
    Value bucket = arith::SubIOp::create(
        b, leading,
        integer(b, (bias + kLeastExponent) << kFractionBits, width));
    bucket = arith::MaxSIOp::create(b, bucket, integer(b, 0, width));
    bucket = arith::MinSIOp::create(b, bucket, integer(b, kBuckets - 1, width));
    if (isSigned) {
      Value isNegative = arith::CmpIOp::create(b, arith::CmpIPredicate::slt,
                                               pattern, integer(b, 0, width));
      bucket = arith::SelectOp::create(
          b, isNegative,
          arith::AddIOp::create(b, bucket, integer(b, kBuckets, width)),
          bucket);
    }
    return width == 64
               ? bucket
               : Value(arith::ExtUIOp::create(b, b.getI64Type(), bucket));
  }
};
} // namespace

void element::attachDynamicCodeModels(MLIRContext *context) {
  nn::DynamicDecodeOp::attachInterface<DecodeElement>(*context);
  nn::DynamicEncodeOp::attachInterface<EncodeElement>(*context);
}
