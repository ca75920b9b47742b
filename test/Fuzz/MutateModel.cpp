// Mutants of an ONNX file that are ONNX files: one field of one message, found
// by reflection, is changed, doubled, taken away, or copied from another
// message of its kind. The rest are mutants of the bytes.

#include "onnx-schema/onnx-ml.pb.h"

#include <google/protobuf/stubs/logging.h>
#include <random>

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

extern "C" size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t maxSize);

namespace {

class Mutator {
public:
  explicit Mutator(unsigned seed) : random(seed) {}

  void mutate(onnx::ModelProto &model) {
    root = &model;
    collect(model);
    Message &message = *messages[below(messages.size())];
    const auto *descriptor = message.GetDescriptor();
    if (descriptor->field_count() == 0)
      return;
    // A field that is there, mostly: absent ones are the most.
    std::vector<const FieldDescriptor *> present;
    message.GetReflection()->ListFields(message, &present);
    const FieldDescriptor *field =
        present.empty() || below(4) == 0
            ? descriptor->field(static_cast<int>(
                  below(static_cast<size_t>(descriptor->field_count()))))
            : present[below(present.size())];
    change(message, *field);
  }

private:
  size_t below(size_t count) { return random() % count; }

  void collect(Message &message) {
    messages.push_back(&message);
    const Reflection &reflection = *message.GetReflection();
    std::vector<const FieldDescriptor *> fields;
    reflection.ListFields(message, &fields);
    for (const FieldDescriptor *field : fields) {
      if (field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE)
        continue;
      if (!field->is_repeated())
        collect(*reflection.MutableMessage(&message, field));
      else
        for (int i = 0; i < reflection.FieldSize(message, field); ++i)
          collect(*reflection.MutableRepeatedMessage(&message, field, i));
    }
  }

  /// Another message of that kind.
  const Message *other(const google::protobuf::Descriptor *descriptor) {
    for (int tries = 0; tries < 20; ++tries)
      if (Message *message = messages[below(messages.size())];
          message->GetDescriptor() == descriptor)
        return message;
    return nullptr;
  }

  void change(Message &message, const FieldDescriptor &field) {
    const Reflection &reflection = *message.GetReflection();
    if (field.is_repeated())
      return changeRepeated(message, field);
    if (below(6) == 0)
      return reflection.ClearField(&message, &field);
    switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_MESSAGE: {
      // Of several that exclude each other it ends the one that was there.
      Message &inner = *reflection.MutableMessage(&message, &field);
      messages.clear();
      collect(*root);
      copyInto(inner);
      break;
    }
    case FieldDescriptor::CPPTYPE_STRING:
      reflection.SetString(&message, &field,
                           text(reflection.GetString(message, &field)));
      break;
    case FieldDescriptor::CPPTYPE_INT64:
      reflection.SetInt64(&message, &field,
                          number(reflection.GetInt64(message, &field)));
      break;
    case FieldDescriptor::CPPTYPE_INT32:
      reflection.SetInt32(
          &message, &field,
          static_cast<int32_t>(number(reflection.GetInt32(message, &field))));
      break;
    case FieldDescriptor::CPPTYPE_ENUM:
      reflection.SetEnumValue(&message, &field, static_cast<int>(below(24)));
      break;
    case FieldDescriptor::CPPTYPE_FLOAT:
      reflection.SetFloat(&message, &field, static_cast<float>(number(0)));
      break;
    default:
      reflection.ClearField(&message, &field);
    }
  }

  void changeRepeated(Message &message, const FieldDescriptor &field) {
    const Reflection &reflection = *message.GetReflection();
    int count = reflection.FieldSize(message, &field);
    int at = count ? static_cast<int>(below(static_cast<size_t>(count))) : 0;
    size_t what = count ? below(5) : 0;
    if (what == 1) {
      reflection.SwapElements(&message, &field, at, count - 1);
      return reflection.RemoveLast(&message, &field);
    }
    if (what == 2)
      return reflection.SwapElements(
          &message, &field, at,
          static_cast<int>(below(static_cast<size_t>(count))));
    switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_MESSAGE: {
      if (what > 2)
        return changeOne(
            *reflection.MutableRepeatedMessage(&message, &field, at));
      const Message *like = other(field.message_type());
      std::string bytes = like ? like->SerializeAsString() : "";
      reflection.AddMessage(&message, &field)->ParseFromString(bytes);
      break;
    }
    case FieldDescriptor::CPPTYPE_STRING:
      if (what > 2)
        reflection.SetRepeatedString(
            &message, &field, at,
            text(reflection.GetRepeatedString(message, &field, at)));
      else
        reflection.AddString(&message, &field, text(""));
      break;
    case FieldDescriptor::CPPTYPE_INT64:
      if (what > 2)
        reflection.SetRepeatedInt64(
            &message, &field, at,
            number(reflection.GetRepeatedInt64(message, &field, at)));
      else
        reflection.AddInt64(&message, &field, number(0));
      break;
    default:
      if (count)
        reflection.RemoveLast(&message, &field);
    }
  }

  void changeOne(Message &message) {
    const auto *descriptor = message.GetDescriptor();
    if (descriptor->field_count())
      change(message, *descriptor->field(static_cast<int>(below(
                          static_cast<size_t>(descriptor->field_count())))));
  }

  void copyInto(Message &message) {
    if (const Message *like = other(message.GetDescriptor());
        like && like != &message) {
      std::string bytes = like->SerializeAsString();
      message.ParseFromString(bytes);
    } else {
      changeOne(message);
    }
  }

  int64_t number(int64_t old) {
    const uint64_t bits = static_cast<uint64_t>(old);
    const uint64_t values[] = {bits + 1, bits - 1,   0,          1,
                               2,        ~0ull,      bits * 2,   bits / 2,
                               1 << 16,  1ull << 32, 1ull << 56, INT64_MAX};
    return static_cast<int64_t>(values[below(std::size(values))]);
  }

  /// Names meet: one that another message has, now and then.
  std::string text(std::string old) {
    static constexpr const char *kTexts[] = {
        "",       "data",    "inner/data",  "out",
        "link",   "../data", "/etc/passwd", "location",
        "offset", "length",  "checksum",    "0",
        "8",      "ai.onnx", "Identity",    "\xff"};
    if (below(3) == 0)
      return kTexts[below(std::size(kTexts))];
    if (below(2) == 0)
      for (int tries = 0; tries < 20; ++tries)
        if (std::string found = someText(); !found.empty())
          return found;
    if (old.empty())
      return "x";
    old[below(old.size())] = static_cast<char>(random());
    return old;
  }

  std::string someText() {
    const Message &message = *messages[below(messages.size())];
    std::vector<const FieldDescriptor *> fields;
    message.GetReflection()->ListFields(message, &fields);
    for (const FieldDescriptor *field : fields) {
      if (field->cpp_type() != FieldDescriptor::CPPTYPE_STRING)
        continue;
      if (!field->is_repeated())
        return message.GetReflection()->GetString(message, field);
      return message.GetReflection()->GetRepeatedString(message, field, 0);
    }
    return "";
  }

  std::minstd_rand random;
  Message *root = nullptr;
  std::vector<Message *> messages;
};

} // namespace

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size,
                                          size_t maxSize, unsigned seed) {
  google::protobuf::LogSilencer silence;
  onnx::ModelProto model;
  if (seed % 4 == 0 || !model.ParseFromArray(data, static_cast<int>(size)))
    return LLVMFuzzerMutate(data, size, maxSize);
  for (unsigned left = 1 + seed / 4 % 3; left > 0; --left)
    Mutator(seed + left).mutate(model);
  if (model.ByteSizeLong() > maxSize)
    return LLVMFuzzerMutate(data, size, maxSize);
  model.SerializeToArray(data, static_cast<int>(maxSize));
  return model.ByteSizeLong();
}
