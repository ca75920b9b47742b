// The header of a .npy file is a Python dictionary of three keys, which is
// parsed here strictly; and the one that is written.

#include "accel-rt/TensorFileFormat.h"

#include "Format/Layout.h"

namespace accel::rt {
namespace {

struct DescrRow {
  const char *descr;
  DType dtype;
};
// bf16 has no NumPy type of its own; ml_dtypes writes it as two raw bytes.
constexpr DescrRow kDescrs[] = {
    {"|b1", DType::I1},   {"|i1", DType::I8},   {"<i2", DType::I16},
    {"<i4", DType::I32},  {"<i8", DType::I64},  {"|u1", DType::UI8},
    {"<u2", DType::UI16}, {"<u4", DType::UI32}, {"<u8", DType::UI64},
    {"<f2", DType::F16},  {"<V2", DType::BF16}, {"<f4", DType::F32},
    {"<f8", DType::F64},  {"|V2", DType::BF16}};

/// Reads the dictionary's text from left to right.
class Dictionary {
public:
  explicit Dictionary(const std::string &text) : text(text) {}

  bool parse(std::string &descr, bool &fortran, std::vector<int64_t> &shape) {
    int seen = 0;
    if (!take('{'))
      return false;
    while (!take('}')) {
      std::string key;
      if (!string(key) || !take(':'))
        return false;
      bool good = key == "descr"           ? string(descr)
                  : key == "fortran_order" ? boolean(fortran)
                  : key == "shape"         ? tuple(shape)
                                           : false;
      if (!good)
        return false;
      ++seen;
      take(',');
    }
    return seen == 3;
  }

private:
  void skip() {
    while (at < text.size() && (text[at] == ' ' || text[at] == '\n'))
      ++at;
  }
  bool take(char c) {
    skip();
    if (at >= text.size() || text[at] != c)
      return false;
    ++at;
    return true;
  }
  bool string(std::string &value) {
    skip();
    if (at >= text.size() || (text[at] != '\'' && text[at] != '"'))
      return false;
    size_t end = text.find(text[at], at + 1);
    if (end == std::string::npos)
      return false;
    value = text.substr(at + 1, end - at - 1);
    at = end + 1;
    return true;
  }
  bool boolean(bool &value) {
    skip();
    value = text.compare(at, 4, "True") == 0;
    if (!value && text.compare(at, 5, "False") != 0)
      return false;
    at += value ? 4 : 5;
    return true;
  }
  bool tuple(std::vector<int64_t> &values) {
    if (!take('('))
      return false;
    while (!take(')')) {
      skip();
      int64_t value = 0;
      size_t begin = at;
      for (; at < text.size() && text[at] >= '0' && text[at] <= '9'; ++at)
        if (value = value * 10 + (text[at] - '0'); value > INT64_MAX / 100)
          return false;
      if (at == begin)
        return false;
      values.push_back(value);
      take(',');
    }
    return true;
  }

  const std::string &text;
  size_t at = 0;
};

} // namespace

std::optional<uint64_t> tensorBytes(DType dtype,
                                    const std::vector<int64_t> &shape) {
  __int128 bytes = dtypeBytes(dtype);
  bool isEmpty = false;
  for (int64_t dim : shape) {
    if (dim < 0 || (dim > 0 && (bytes *= dim) > __int128(1) << 56))
      return std::nullopt;
    isEmpty |= dim == 0;
  }
  return isEmpty ? 0 : static_cast<uint64_t>(bytes);
}

Status findNpyElements(std::string_view start, uint64_t fileBytes,
                       uint64_t &offset) {
  auto byte = [&](size_t at) {
    return static_cast<uint64_t>(static_cast<uint8_t>(start[at]));
  };
  if (start.size() < kNpyStart || start.substr(0, 6) != "\x93NUMPY" ||
      byte(6) < 1 || byte(6) > 3)
    return Status::error("expected a .npy file of version 1 to 3");
  bool isLong = byte(6) > 1;
  uint64_t length = byte(8) | byte(9) << 8;
  if (isLong)
    length |= byte(10) << 16 | byte(11) << 24;
  uint64_t begin = isLong ? 12 : 10;
  if (length > (1 << 20) || begin + length > fileBytes)
    return Status::error("expected a header of " + std::to_string(length) +
                         " bytes, found " + std::to_string(fileBytes - begin));
  offset = begin + length;
  return Status();
}

Status readNpyHeader(std::string_view front, uint64_t fileBytes,
                     TensorHeader &header) {
  ACCEL_RT_RETURN_IF_ERROR(
      findNpyElements(front.substr(0, kNpyStart), fileBytes, header.offset));
  std::string text(front.substr(front[6] > 1 ? 12 : 10)), descr;
  bool fortran = false;
  header.shape.clear();
  if (!Dictionary(text).parse(descr, fortran, header.shape))
    return Status::error(
        "expected 'descr', 'fortran_order' and 'shape' in its header");
  const DescrRow *row = nullptr;
  for (const DescrRow &candidate : kDescrs)
    if (descr == candidate.descr)
      row = &candidate;
  if (!row)
    return Status::error(
        "expected elements that are numbers, little-endian, found " +
        inQuotes(descr));
  header.dtype = row->dtype;
  std::optional<uint64_t> bytes = tensorBytes(header.dtype, header.shape);
  if (!bytes)
    return Status::error("expected a shape that its bytes can fill");
  if (*bytes > fileBytes - header.offset)
    return Status::error("expected " + std::to_string(*bytes) +
                         " bytes of elements, found " +
                         std::to_string(fileBytes - header.offset));
  header.strides = rowMajorStrides(header.shape);
  if (fortran) {
    int64_t stride = 1;
    for (size_t i = 0; i < header.shape.size(); stride *= header.shape[i++])
      header.strides[i] = stride;
  }
  return Status();
}

std::string npyHeader(DType dtype, const std::vector<int64_t> &shape) {
  // Types that NumPy does not know are written as raw bytes.
  std::string descr = "|V" + std::to_string(dtypeBytes(dtype));
  for (const DescrRow &row : kDescrs)
    if (row.dtype == dtype) {
      descr = row.descr;
      break;
    }
  std::string dims;
  for (size_t i = 0; i < shape.size(); ++i)
    dims += std::to_string(shape[i]) + (i + 1 < shape.size() ? ", "
                                        : shape.size() == 1  ? ","
                                                             : "");
  std::string text = "{'descr': '" + descr +
                     "', 'fortran_order': False, 'shape': (" + dims + "), }";
  text.append(63 - (10 + text.size()) % 64, ' ');
  text += '\n';
  std::string header = "\x93NUMPY";
  header += '\1';
  header += '\0';
  header += static_cast<char>(text.size() & 255);
  header += static_cast<char>(text.size() >> 8);
  return header + text;
}

} // namespace accel::rt
