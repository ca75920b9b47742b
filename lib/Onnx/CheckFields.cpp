// The walk over every message of a model that refuses what the schema does not
// know: a field we cannot read may change what the model means.
#include "Internal.h"
#include "llvm/ADT/Twine.h"
#include "llvm/Support/ConvertUTF.h"
#include "llvm/Support/JSON.h"
#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>
#include <google/protobuf/unknown_field_set.h>

using namespace llvm;
using namespace mlir;
namespace pb = google::protobuf;

namespace accel::onnxio {

namespace {
class FieldChecker {
public:
  explicit FieldChecker(const Source &source) : source(source) {}

  LogicalResult check(const pb::Message &message, const std::string &path);

private:
  LogicalResult refuseUnknown(const pb::Message &message,
                              const std::string &path);
  const Source &source;
};
} // namespace

LogicalResult FieldChecker::refuseUnknown(const pb::Message &message,
                                          const std::string &path) {
  const pb::UnknownFieldSet &unknown =
      message.GetReflection()->GetUnknownFields(message);
  if (unknown.empty())
    return success();
  std::string where =
      path.empty() ? "the model" : "'" + path + "' of the model";
  int number = unknown.field(0).number();
  const pb::FieldDescriptor *known =
      message.GetDescriptor()->FindFieldByNumber(number);
  if (!known)
    return source.error() << "unknown protobuf field " << number << " in "
                          << where << ", expected only fields of "
                          << message.GetDescriptor()->full_name();
  if (known->type() == pb::FieldDescriptor::TYPE_ENUM &&
      unknown.field(0).type() == pb::UnknownField::TYPE_VARINT)
    return source.error() << "field '" << known->name() << "' in " << where
                          << " has the unknown value "
                          << int64_t(unknown.field(0).varint());
  return source.error() << "field '" << known->name() << "' in " << where
                        << " is not encoded as a " << known->type_name();
}

LogicalResult FieldChecker::check(const pb::Message &message,
                                  const std::string &path) {
  if (failed(refuseUnknown(message, path)))
    return failure();
  const pb::Reflection *reflection = message.GetReflection();
  std::vector<const pb::FieldDescriptor *> fields;
  reflection->ListFields(message, &fields);
  std::string scratch;
  for (const pb::FieldDescriptor *field : fields) {
    bool isMessage = field->cpp_type() == pb::FieldDescriptor::CPPTYPE_MESSAGE;
    bool isText = field->type() == pb::FieldDescriptor::TYPE_STRING;
    if (!isMessage && !isText)
      continue;
    int count =
        field->is_repeated() ? reflection->FieldSize(message, field) : 1;
    for (int i = 0; i < count; ++i) {
      auto inner = [&] {
        std::string name = path.empty() ? "" : path + ".";
        name += field->name();
        return field->is_repeated() ? name + "[" + std::to_string(i) + "]"
                                    : name;
      };
      if (isText) {
        const std::string &text =
            field->is_repeated()
                ? reflection->GetRepeatedStringReference(message, field, i,
                                                         &scratch)
                : reflection->GetStringReference(message, field, &scratch);
        if (!json::isUTF8(text))
          return source.error()
                 << "'" << inner() << "' of the model is not UTF-8 text";
      } else {
        const pb::Message &child =
            field->is_repeated()
                ? reflection->GetRepeatedMessage(message, field, i)
                : reflection->GetMessage(message, field);
        if (failed(check(child, inner())))
          return failure();
      }
    }
  }
  return success();
}

LogicalResult checkFields(const onnx::ModelProto &model, const Source &source) {
  return FieldChecker(source).check(model, "");
}

} // namespace accel::onnxio
