// Tensors: rounding, bytes and attributes.

#include "dialects/Tensor/Tensor.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/MLIRContext.h"
#include "gmock/gmock.h"
#include <cmath>

using namespace accel;
using namespace mlir;
using ::testing::ElementsAre;

namespace {
struct TensorTest : ::testing::Test {
  MLIRContext context;
  Builder b{&context};

  /// The value that reading back the bytes of `value` gives.
  double throughBytes(double value, Type type) {
    Tensor tensor({}, type);
    tensor.mutableFloats()[0] = value;
    SmallVector<char> bytes(tensor.getElementBytes());
    tensor.toBytes(bytes);
    return Tensor::fromBytes(tensor.getType(), bytes).floats()[0];
  }
};
} // namespace

TEST_F(TensorTest, RoundsTiesToEven) {
  Type f16 = b.getF16Type(), bf16 = b.getBF16Type(), f32 = b.getF32Type();
  // Halfway between neighbours of 2048: 2049 goes to even 2048, 2051 to 2052.
  EXPECT_EQ(roundToType(2049, f16), 2048);
  EXPECT_EQ(roundToType(2051, f16), 2052);
  EXPECT_EQ(roundToType(257, bf16), 256);
  EXPECT_EQ(roundToType(259, bf16), 260);
  EXPECT_EQ(roundToType(0.1, f32), 0.1f);
  EXPECT_EQ(roundToType(65519, f16), 65504);
  EXPECT_EQ(roundToType(65520, f16), INFINITY);
  EXPECT_EQ(roundToType(-1e39, bf16), -INFINITY);
  // Subnormals: multiples of 2^-24; 2^-25 is halfway to 0, which is even.
  EXPECT_EQ(roundToType(0x1p-25, f16), 0);
  EXPECT_EQ(roundToType(0x1.8p-24, f16), 0x1p-23);
  EXPECT_EQ(roundToType(0x1.4p-23, f16), 0x1p-23);
  EXPECT_EQ(roundToType(0x1.2p-133, bf16), 0x1p-133);
  EXPECT_TRUE(std::isnan(roundToType(NAN, f16)));
  // Once: to f32 first, this would become a tie and round up to 1.0078125.
  EXPECT_EQ(roundToType(1.00390625 - 0x1p-40, bf16), 1);
}

TEST_F(TensorTest, BytesKeepEveryFloat) {
  Type types[] = {b.getF64Type(), b.getF32Type(), b.getF16Type(),
                  b.getBF16Type()};
  for (Type type : types)
    for (double value : {0.0, 1.0, -2.5, 0x1p-14, 0x1.8p-15, 65024.0})
      EXPECT_EQ(throughBytes(value, type), value);
  for (Type type : types) {
    EXPECT_EQ(throughBytes(INFINITY, type), INFINITY);
    EXPECT_TRUE(std::isnan(throughBytes(NAN, type)));
    EXPECT_TRUE(std::signbit(throughBytes(-0.0, type)));
  }
  EXPECT_EQ(throughBytes(0x1p-24, b.getF16Type()), 0x1p-24);
  EXPECT_EQ(throughBytes(M_PI, b.getF64Type()), M_PI);
}

TEST_F(TensorTest, KnownBytes) {
  Tensor half({2}, b.getF16Type());
  half.mutableFloats()[0] = 1;
  half.mutableFloats()[1] = -2;
  char bytes[4];
  half.toBytes(bytes);
  EXPECT_THAT(bytes, ElementsAre(0x00, 0x3C, 0x00, char(0xC0)));
  Tensor ints({2}, b.getI32Type());
  ints.mutableInts()[0] = -2;
  ints.mutableInts()[1] = 258;
  char wide[8];
  ints.toBytes(wide);
  EXPECT_THAT(wide, ElementsAre(char(0xFE), char(0xFF), char(0xFF), char(0xFF),
                                2, 1, 0, 0));
  EXPECT_THAT(Tensor::fromBytes(ints.getType(), wide).ints(),
              ElementsAre(-2, 258));
}

TEST_F(TensorTest, AttributesAndBack) {
  Type types[] = {b.getF64Type(),  b.getF32Type(),
                  b.getBF16Type(), b.getI64Type(),
                  b.getI1Type(),   b.getIntegerType(8, /*isSigned=*/false)};
  for (Type type : types) {
    Tensor tensor({2, 2}, type);
    for (int i = 0; i < 4; ++i)
      if (tensor.isFloat())
        tensor.mutableFloats()[i] = i % 2 + 0.5;
      else
        tensor.mutableInts()[i] = i % 2;
    DenseElementsAttr elements = tensor.toElements();
    EXPECT_FALSE(elements.isSplat());
    FailureOr<Tensor> back = Tensor::fromElements(elements);
    ASSERT_TRUE(succeeded(back));
    for (int i = 0; i < 4; ++i)
      EXPECT_EQ(back->asDouble(i), tensor.asDouble(i));
    Tensor ones({2, 2}, type);
    if (ones.isFloat())
      llvm::fill(ones.mutableFloats(), 1);
    else
      llvm::fill(ones.mutableInts(), 1);
    EXPECT_TRUE(ones.toElements().isSplat());
    EXPECT_EQ(Tensor::fromElements(ones.toElements())->asDouble(3), 1);
  }
}

TEST_F(TensorTest, MinusZeroIsNoSplatWithZero) {
  Tensor tensor({2}, b.getF32Type());
  tensor.mutableFloats()[1] = -0.0;
  EXPECT_FALSE(tensor.toElements().isSplat());
}

TEST_F(TensorTest, CopiesShareUntilWritten) {
  Tensor one({2}, b.getF32Type());
  Tensor two = one.reshape({2, 1});
  EXPECT_EQ(one.floats().data(), two.floats().data());
  two.mutableFloats()[0] = 5;
  EXPECT_EQ(one.floats()[0], 0);
  EXPECT_EQ(two.floats()[0], 5);
}

TEST_F(TensorTest, LooksAtNoRowsOfNoElements) {
  // 2^40 rows of none: whoever visits them does not end.
  int64_t rows = int64_t(1) << 40;
  Tensor none({1, 0}, b.getF32Type());
  EXPECT_EQ(none.strided({rows, 0}, {0, 1}).getNumElements(), 0);
  forEachPosition({rows, 0}, {0, 1}, 0, [](int64_t) { FAIL(); });
}
