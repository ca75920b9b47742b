// Tensor data: typed against raw, external files, and their errors.
#include "TestModel.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/SHA1.h"
#include <unistd.h>

using namespace accel::onnxio;
using T = onnx::TensorProto;

namespace {
class PayloadTest : public OnnxTest {
protected:
  /// A model whose only initializer is `tensor`, called "w".
  static onnx::ModelProto modelWith(onnx::TensorProto tensor) {
    onnx::ModelProto model = smallModel();
    tensor.set_name("t");
    *model.mutable_graph()->add_initializer() = tensor;
    return model;
  }
  static onnx::TensorProto tensorOf(int type, std::vector<int64_t> shape) {
    onnx::TensorProto tensor;
    tensor.set_data_type(type);
    for (int64_t dim : shape)
      tensor.add_dims(dim);
    return tensor;
  }
  std::string bytesOf(const onnx::TensorProto &tensor) {
    File file = load(modelWith(tensor));
    EXPECT_TRUE(succeeded(file));
    if (failed(file))
      return "";
    const Payload &payload = (*file)->payload(*(*file)->findInitializer("t"));
    EXPECT_EQ(payload.bytes, payload.data.size());
    return std::string(payload.data.begin(), payload.data.end());
  }
  onnx::TensorProto external(std::vector<std::pair<std::string, std::string>> e,
                             std::vector<int64_t> shape = {2}) {
    onnx::TensorProto tensor = tensorOf(T::FLOAT, shape);
    tensor.set_data_location(T::EXTERNAL);
    for (auto &[key, value] : e) {
      onnx::StringStringEntryProto *entry = tensor.add_external_data();
      entry->set_key(key);
      entry->set_value(value);
    }
    return tensor;
  }
  void expectTensorError(const onnx::TensorProto &tensor,
                         const std::string &text) {
    expectError(modelWith(tensor), text);
    EXPECT_THAT(messages[0], testing::StartsWith("initializer 't': "));
  }
};
} // namespace

TEST_F(PayloadTest, typedDataOfEveryType) {
  auto int32 = [&](int type, std::vector<int64_t> shape,
                   std::vector<int32_t> values) {
    onnx::TensorProto tensor = tensorOf(type, shape);
    for (int32_t value : values)
      tensor.add_int32_data(value);
    return bytesOf(tensor);
  };
  using namespace std::string_literals;
  EXPECT_EQ(int32(T::INT32, {1}, {-2}), "\xfe\xff\xff\xff"s);
  EXPECT_EQ(int32(T::INT16, {2}, {-2, 3}), "\xfe\xff\x03\x00"s);
  EXPECT_EQ(int32(T::UINT16, {1}, {65535}), "\xff\xff"s);
  EXPECT_EQ(int32(T::INT8, {2}, {-1, 5}), "\xff\x05"s);
  EXPECT_EQ(int32(T::UINT8, {1}, {255}), "\xff"s);
  EXPECT_EQ(int32(T::BOOL, {2}, {1, 0}), "\x01\x00"s);
  EXPECT_EQ(int32(T::FLOAT16, {1}, {0x3c00}), "\x00\x3c"s);
  EXPECT_EQ(int32(T::BFLOAT16, {1}, {0xbf80}), "\x80\xbf"s);
  EXPECT_EQ(int32(T::FLOAT8E4M3FN, {1}, {0x38}), "\x38"s);
  EXPECT_EQ(int32(T::FLOAT8E5M2, {1}, {0x3c}), "\x3c"s);
  EXPECT_EQ(int32(T::INT4, {3}, {0x21, 0x3}), "\x21\x03"s);
  EXPECT_EQ(int32(T::UINT4, {2}, {0xf1}), "\xf1"s);
  onnx::TensorProto packed = tensorOf(T::FLOAT6E2M3, {5});
  packed.set_raw_data("1234"s); // four elements in three bytes
  EXPECT_EQ(bytesOf(packed), "1234"s);

  onnx::TensorProto tensor = tensorOf(T::FLOAT, {1});
  tensor.add_float_data(1.5f);
  EXPECT_EQ(bytesOf(tensor), "\x00\x00\xc0\x3f"s);
  tensor = tensorOf(T::DOUBLE, {1});
  tensor.add_double_data(1.5);
  EXPECT_EQ(bytesOf(tensor), "\x00\x00\x00\x00\x00\x00\xf8\x3f"s);
  tensor = tensorOf(T::INT64, {1});
  tensor.add_int64_data(-1);
  EXPECT_EQ(bytesOf(tensor), std::string(8, '\xff'));
  tensor = tensorOf(T::UINT64, {1});
  tensor.add_uint64_data(2);
  EXPECT_EQ(bytesOf(tensor), "\x02\x00\x00\x00\x00\x00\x00\x00"s);
  tensor = tensorOf(T::UINT32, {1});
  tensor.add_uint64_data(0xffffffff);
  EXPECT_EQ(bytesOf(tensor), std::string(4, '\xff'));
  EXPECT_EQ(bytesOf(tensorOf(T::FLOAT, {0, 5})), "");
}

TEST_F(PayloadTest, refusesDataThatDoesNotFit) {
  onnx::TensorProto tensor = tensorOf(T::FLOAT, {2});
  expectTensorError(tensor, "expected 8 bytes of data, found none");
  tensor.add_float_data(1);
  expectTensorError(tensor, "expected 2 values of type 'float', found 1");
  tensor.set_raw_data("12345678");
  expectTensorError(tensor, "has both raw and typed data");
  tensor.clear_float_data();
  tensor.set_raw_data("1234567");
  expectTensorError(tensor, "expected 8 bytes of data, found 7");
  expectTensorError(tensorOf(T::FLOAT, {-1}),
                    "expected dimensions of at least");
  expectTensorError(tensorOf(T::FLOAT, {1LL << 40, 1LL << 40}),
                    "has more elements than can be addressed");
  expectTensorError(tensorOf(T::FLOAT, {0, 1LL << 40, 1LL << 40}),
                    "has more elements than can be addressed");
  expectTensorError(tensorOf(T::FLOAT, {1LL << 40}), "found none");
  expectTensorError(tensorOf(99, {1}), "unsupported element type 'type 99'");
  expectTensorError(tensorOf(T::UNDEFINED, {1}), "unsupported element type");
  tensor = tensorOf(T::INT8, {1});
  tensor.add_int32_data(300);
  expectTensorError(tensor, "holds 300, which is no 'int8'");
  tensor = tensorOf(T::FLOAT, {1});
  tensor.add_string_data("x");
  expectTensorError(tensor, "has strings for data");
  tensor = tensorOf(T::FLOAT, {1});
  tensor.mutable_segment()->set_begin(0);
  expectTensorError(tensor, "is a segment of a tensor");
}

TEST_F(PayloadTest, tensorsInAttributesAreCheckedToo) {
  onnx::ModelProto model = smallModel();
  onnx::AttributeProto *attribute =
      model.mutable_graph()->mutable_node(0)->add_attribute();
  attribute->set_name("value");
  *attribute->mutable_t() = tensorOf(T::FLOAT, {2});
  expectError(model, "node 'Add#0' (Add): attribute 'value': expected 8 "
                     "bytes");
}

TEST_F(PayloadTest, readsExternalData) {
  std::string bytes = "0123456789abcdef";
  folder.write("weights.bin", bytes);
  std::string sha = llvm::toHex(
      llvm::SHA1::hash(llvm::arrayRefFromStringRef(bytes)), /*LowerCase=*/true);
  onnx::TensorProto tensor = external({{"location", "weights.bin"},
                                       {"offset", "4"},
                                       {"length", "8"},
                                       {"checksum", sha}});
  EXPECT_EQ(bytesOf(tensor), "456789ab");
  File file = load(modelWith(tensor));
  const Payload &payload = (*file)->payload(*(*file)->findInitializer("t"));
  EXPECT_TRUE(payload.byReference);
  EXPECT_EQ(payload.offset, 4u);
  EXPECT_EQ(payload.path, folder.file("weights.bin"));
  EXPECT_EQ(bytesOf(external({{"location", "weights.bin"}})), "01234567");
  EXPECT_EQ(bytesOf(external({{"location", "./weights.bin"}})), "01234567");
}

TEST_F(PayloadTest, takesNoteOfValuesThatAreAbsent) {
  onnx::TensorProto tensor =
      external({{"location", "absent.bin"}, {"offset", "4"}, {"length", "8"}});
  File file = load(modelWith(tensor));
  ASSERT_TRUE(succeeded(file));
  const onnx::TensorProto &found = *(*file)->findInitializer("t");
  const Payload &payload = (*file)->payload(found);
  EXPECT_TRUE(payload.isAbsent && payload.isExternal && payload.byReference);
  EXPECT_EQ(payload.bytes, 8u);
  EXPECT_TRUE(payload.data.empty());
  // Nobody has asked yet.
  EXPECT_TRUE(succeeded((*file)->checkValuesRead()));
  EXPECT_TRUE((*file)->values(found).empty());
  EXPECT_TRUE(failed((*file)->checkValuesRead()));
  expectTensorError(
      external({{"location", "absent.bin"}, {"checksum", "0000"}}),
      "with SHA-1 0000, found no such file");
}

TEST_F(PayloadTest, refusesExternalDataOutsideTheFolder) {
  TestFolder other;
  std::string outside = other.write("secret", "0123456789abcdef");
  expectTensorError(external({{"location", outside}}),
                    "expected external data inside the model's folder");
  expectTensorError(external({{"location", "../secret"}}),
                    "expected external data inside the model's folder");
  expectTensorError(external({{"location", "a/../../secret"}}),
                    "expected external data inside the model's folder");
  ASSERT_EQ(symlink(outside.c_str(), folder.file("link").c_str()), 0);
  expectTensorError(external({{"location", "link"}}), "a link to '");
  ASSERT_EQ(symlink(other.path.c_str(), folder.file("dir").c_str()), 0);
  expectTensorError(external({{"location", "dir/secret"}}), "a link to '");
  expectTensorError(external({}), "has external data without a location");
}

TEST_F(PayloadTest, refusesExternalDataThatIsNotThere) {
  folder.write("weights.bin", "0123456789abcdef");
  auto with = [&](const char *key, const char *value) {
    return external({{"location", "weights.bin"}, {key, value}});
  };
  expectTensorError(external({{"location", "."}}),
                    "expected external data inside the model's folder");
  expectTensorError(with("offset", "12"), "found a file of 16 bytes");
  expectTensorError(with("offset", "18446744073709551612"),
                    "found a file of 16 bytes");
  expectTensorError(with("offset", "18446744073709551616"),
                    "expected a number of bytes as external data's 'offset'");
  expectTensorError(with("offset", "-4"), "expected a number of bytes");
  expectTensorError(with("length", "4"),
                    "expected 8 bytes of external data, found length 4");
  expectTensorError(with("checksum", "0000"), "with SHA-1 0000, found");
  expectTensorError(with("flavour", "x"), "the unknown key 'flavour'");
  expectTensorError(with("location", "weights.bin"), "two 'location'");
  onnx::TensorProto tensor = with("offset", "0");
  tensor.add_float_data(1);
  expectTensorError(tensor, "has external data and data in the model file");
  tensor = with("offset", "0");
  tensor.clear_data_location();
  expectTensorError(tensor, "says that its data is in the model file");
}
