// Random inputs, and tensors through files.

#include "dialects/NN/NN.h"
#include "lib/Evaluate/Models.h"
#include "lib/Evaluate/TensorFiles.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Support/FileSystem.h"
#include "gmock/gmock.h"

using namespace accel;
using namespace accel::evaluate;
using namespace mlir;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

namespace {
struct InputsTest : ::testing::Test {
  InputsTest() {
    DialectRegistry registry;
    registry.insert<nn::NNDialect, func::FuncDialect>();
    registerEvaluateModels(registry);
    context.appendDialectRegistry(registry);
    context.loadAllAvailableDialects();
  }

  TensorsByName makeInputs(uint64_t seed) {
    // Token ids reach the table by way of a call and a reshape.
    module = parseSourceString<ModuleOp>(R"(
      func.func private @embed(%i: tensor<4x50xi64>) -> tensor<200x2xf32> {
        %0 = nn.reshape %i : (tensor<4x50xi64>) -> tensor<200xi64>
        %t = nn.constant dense<1.0> : tensor<40x2xf32>
        %1 = nn.gather %t, %0 dim 0 : (tensor<40x2xf32>, tensor<200xi64>) -> tensor<200x2xf32>
        return %1 : tensor<200x2xf32>
      }
      func.func @main(%i: tensor<4x50xi64> {nn.input = "ids"},
                      %m: tensor<100xi64> {nn.input = "mask"},
                      %x: tensor<1000xf32> {nn.input = "x"},
                      %y: tensor<1000xf32> {nn.input = "y"})
          -> tensor<200x2xf32> attributes {nn.entry} {
        %0 = call @embed(%i) : (tensor<4x50xi64>) -> tensor<200x2xf32>
        return %0 : tensor<200x2xf32>
      })",
                                         &context);
    FailureOr<TensorsByName> inputs = makeRandomInputs(*module, seed);
    EXPECT_TRUE(succeeded(inputs));
    return *inputs;
  }

  std::string path(const std::string &name) {
    std::string folder = ACCEL_BUILD_DIR "/test/Unit/tensors";
    EXPECT_FALSE(llvm::sys::fs::create_directories(folder));
    return folder + "/" + name;
  }

  MLIRContext context;
  OwningOpRef<ModuleOp> module;
};
} // namespace

TEST_F(InputsTest, IntegersAreLegalIndices) {
  TensorsByName inputs = makeInputs(1);
  int64_t largest = 0;
  for (int64_t id : inputs["ids"].ints()) {
    EXPECT_GE(id, 0);
    EXPECT_LT(id, 40);
    largest = std::max(largest, id);
  }
  EXPECT_GT(largest, 30); // of 200 ids, some are large
  for (int64_t bit : inputs["mask"].ints())
    EXPECT_TRUE(bit == 0 || bit == 1);
}

TEST_F(InputsTest, FloatsAreNormalAndExactInEveryType) {
  TensorsByName inputs = makeInputs(1);
  double sum = 0, squares = 0;
  Builder b(&context);
  for (double value : inputs["x"].floats()) {
    EXPECT_EQ(roundToType(value, b.getBF16Type()), value);
    EXPECT_EQ(roundToType(value, b.getF16Type()), value);
    sum += value;
    squares += value * value;
  }
  EXPECT_NEAR(sum / 1000, 0, 0.1);
  EXPECT_NEAR(squares / 1000, 1, 0.15);
}

TEST_F(InputsTest, SeedAndNameDecide) {
  TensorsByName one = makeInputs(1), again = makeInputs(1), two = makeInputs(2);
  EXPECT_EQ(one["x"].floats(), again["x"].floats());
  EXPECT_NE(one["x"].floats(), two["x"].floats());
  EXPECT_NE(one["x"].floats(), one["y"].floats());
}

TEST_F(InputsTest, NpyKeepsEveryType) {
  Builder b(&context);
  Type types[] = {b.getF64Type(),      b.getF32Type(),
                  b.getF16Type(),      b.getI64Type(),
                  b.getI32Type(),      b.getIntegerType(16),
                  b.getIntegerType(8), b.getIntegerType(8, /*isSigned=*/false),
                  b.getI1Type()};
  for (Type type : types) {
    for (const SmallVector<int64_t> &shape :
         {SmallVector<int64_t>{}, SmallVector<int64_t>{3},
          SmallVector<int64_t>{2, 0}, SmallVector<int64_t>{2, 3}}) {
      Tensor tensor(shape, type);
      for (int64_t i = 0; i < tensor.getNumElements(); ++i)
        if (tensor.isFloat())
          tensor.mutableFloats()[i] = i - 1.5;
        else
          tensor.mutableInts()[i] = wrapToType(i, type);
      ASSERT_TRUE(succeeded(writeNpy(path("t.npy"), tensor, false, &context)));
      FailureOr<Tensor> back = readTensorFile(path("t.npy"), &context);
      ASSERT_TRUE(succeeded(back));
      EXPECT_TRUE(back->hasType(tensor.getType()));
      for (int64_t i = 0; i < tensor.getNumElements(); ++i)
        EXPECT_EQ(back->asDouble(i), tensor.asDouble(i));
    }
  }
}

TEST_F(InputsTest, WrongFilesAreRefused) {
  std::string message;
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
    message = diagnostic.str();
    return success();
  });
  auto read = [&](StringRef bytes, const char *name) {
    std::error_code error;
    llvm::raw_fd_ostream(path(name), error) << bytes;
    EXPECT_TRUE(failed(readTensorFile(path(name), &context)));
    return message;
  };
  std::string header = "\x93NUMPY\1";
  header += '\0';
  auto npy = [&](std::string text, StringRef data) {
    return header + static_cast<char>(text.size()) + '\0' + text + data.str();
  };
  EXPECT_THAT(read("abc", "a.npy"), HasSubstr("expected a .npy file"));
  EXPECT_THAT(read(header + "\xFF\xFF{}", "b.npy"),
              HasSubstr("expected a header of 65535 bytes, found 2"));
  EXPECT_THAT(
      read(npy("{'descr': '<c8', 'fortran_order': False, 'shape': (1,), }",
               "12345678"),
           "c.npy"),
      HasSubstr("found '<c8'"));
  EXPECT_THAT(
      read(npy("{'descr': '<f4', 'fortran_order': True, 'shape': (2, 1, 2), }",
               "1234123412341234"),
           "d.npy"),
      HasSubstr("found Fortran order"));
  EXPECT_THAT(
      read(npy("{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }",
               "1234"),
           "e.npy"),
      HasSubstr("expected 8 bytes of elements, found 4"));
  EXPECT_THAT(
      read(npy("{'descr': '<f4', 'fortran_order': False, 'shape': (-2,), }",
               "1234"),
           "f.npy"),
      HasSubstr("'shape' in its header"));
  EXPECT_THAT(read("\x0A\xFF", "g.pb"), HasSubstr("expected a TensorProto"));
  // dims 2, type float, raw data of 4 bytes.
  EXPECT_THAT(read("\x08\x02\x10\x01\x4A\x04zzzz", "h.pb"),
              HasSubstr("expected 8 bytes of elements, found 4"));
  EXPECT_THAT(read("\x08\x01\x10\x08", "i.pb"), HasSubstr("found ONNX type 8"));
  EXPECT_TRUE(failed(readTensorFile(path("absent.npy"), &context)));
  EXPECT_THAT(message, HasSubstr("cannot be read"));
}

TEST_F(InputsTest, PbReadsTypedAndRawData) {
  auto read = [&](StringRef bytes) {
    std::error_code error;
    llvm::raw_fd_ostream(path("p.pb"), error) << bytes;
    std::string name;
    FailureOr<Tensor> tensor = readTensorFile(path("p.pb"), &context, &name);
    EXPECT_TRUE(succeeded(tensor));
    EXPECT_EQ(name, "n");
    return *tensor;
  };
  // float16 in int32_data: 0x3C00 = 1, 0xC000 = -2.
  EXPECT_THAT(read(StringRef("\x08\x02\x10\x0A\x2A\x05\x80\x78\x80\x80\x03"
                             "\x42\x01n",
                             14))
                  .floats(),
              ElementsAre(1, -2));
  // int64_data 3, 4.
  EXPECT_THAT(
      read(StringRef("\x08\x02\x10\x07\x3A\x02\x03\x04\x42\x01n", 11)).ints(),
      ElementsAre(3, 4));
  // raw_data of uint8.
  EXPECT_THAT(
      read(StringRef("\x08\x02\x10\x02\x42\x01n\x4A\x02\xFF\x01", 11)).ints(),
      ElementsAre(255, 1));
}

TEST_F(InputsTest, ConversionRefusesWhatDoesNotFit) {
  Builder b(&context);
  Location loc = b.getUnknownLoc();
  std::string message;
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
    message = diagnostic.str();
    return success();
  });
  Tensor wide({2}, b.getI64Type());
  wide.mutableInts()[0] = 300;
  auto i8 = RankedTensorType::get({2}, b.getIntegerType(8));
  EXPECT_TRUE(failed(convertTo(wide, i8, loc, "it")));
  EXPECT_THAT(message, HasSubstr("values out of its range"));
  wide.mutableInts()[0] = -3;
  EXPECT_THAT(convertTo(wide, i8, loc, "it")->ints(), ElementsAre(-3, 0));
  EXPECT_TRUE(failed(
      convertTo(wide, RankedTensorType::get({2}, b.getF32Type()), loc, "it")));
  EXPECT_TRUE(failed(convertTo(
      wide, RankedTensorType::get({1, 2}, b.getI64Type()), loc, "it")));
  Tensor tenth({}, b.getF64Type());
  tenth.mutableFloats()[0] = 0.1;
  EXPECT_EQ(
      convertTo(tenth, RankedTensorType::get({}, b.getF32Type()), loc, "it")
          ->floats()[0],
      0.1f);
}

TEST_F(InputsTest, DifferenceIsRelativeAboveOne) {
  Builder b(&context);
  auto difference = [&](double found, double expected) {
    Tensor x({}, b.getF64Type()), y({}, b.getF64Type());
    x.mutableFloats()[0] = found;
    y.mutableFloats()[0] = expected;
    return getMaxDifference(x, y);
  };
  EXPECT_EQ(difference(5, 3), 0.5);
  EXPECT_EQ(difference(3, -1), 2);
  EXPECT_EQ(difference(NAN, NAN), 0);
  EXPECT_EQ(difference(INFINITY, INFINITY), 0);
  EXPECT_EQ(difference(NAN, 1), INFINITY);
  EXPECT_EQ(difference(1, NAN), INFINITY);
  EXPECT_EQ(difference(-INFINITY, INFINITY), INFINITY);
}
