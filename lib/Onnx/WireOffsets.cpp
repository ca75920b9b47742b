// Finds where initializers' raw data lies in a serialised model. Protobuf's
// parser copies bytes and forgets where they came from, so the few enclosing
// messages are walked once more by their tags.
#include "Internal.h"
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/wire_format_lite.h>

using google::protobuf::internal::WireFormatLite;
using google::protobuf::io::CodedInputStream;

namespace accel::onnxio {

/// Calls `visit` with each field's number at the start of a length-delimited
/// field's content; the visit consumes `length` bytes or none. Stops at the end
/// of the enclosing message or at the first malformed byte.
static void walk(CodedInputStream &in,
                 llvm::function_ref<void(int field, int length)> visit) {
  while (uint32_t tag = in.ReadTag()) {
    if (WireFormatLite::GetTagWireType(tag) !=
        WireFormatLite::WIRETYPE_LENGTH_DELIMITED) {
      if (!WireFormatLite::SkipField(&in, tag))
        return;
      continue;
    }
    int length;
    if (!in.ReadVarintSizeAsInt(&length))
      return;
    int start = in.CurrentPosition();
    visit(WireFormatLite::GetTagFieldNumber(tag), length);
    int rest = start + length - in.CurrentPosition();
    if (rest < 0 || !in.Skip(rest))
      return;
  }
}

std::vector<int64_t> rawDataOffsets(llvm::ArrayRef<char> model) {
  std::vector<int64_t> offsets;
  CodedInputStream in(reinterpret_cast<const uint8_t *>(model.data()),
                      static_cast<int>(model.size()));
  in.SetTotalBytesLimit(static_cast<int>(model.size()));
  walk(in, [&](int field, int length) {
    if (field != onnx::ModelProto::kGraphFieldNumber)
      return;
    auto graphLimit = in.PushLimit(length);
    walk(in, [&](int field, int length) {
      if (field != onnx::GraphProto::kInitializerFieldNumber)
        return;
      offsets.push_back(-1);
      auto tensorLimit = in.PushLimit(length);
      walk(in, [&](int field, int) {
        if (field == onnx::TensorProto::kRawDataFieldNumber)
          offsets.back() = in.CurrentPosition();
      });
      in.PopLimit(tensorLimit);
    });
    in.PopLimit(graphLimit);
  });
  return offsets;
}

} // namespace accel::onnxio
