// The search for steps from a parameter to what was computed from it. Few
// candidates are ever tried to the end: the first element that differs drops
// one.
#include "RestoreFolded.h"
#include "ParameterBuilder.h"
#include "ParameterRoles.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSwitch.h"
#include <cmath>
#include <cstring>

using namespace llvm;

namespace accel::onnxio {

//===-- What names allow --------------------------------------------------===//

/// Of calls, by the names that FX gives their results.
static std::optional<FoldedSteps> stepsOfOperator(StringRef op) {
  static const FoldedSteps layout{true, false, false},
      scale{false, true, false}, square{false, false, true},
      product{false, true, true}, repeat{true, false, false, true};
  return StringSwitch<std::optional<FoldedSteps>>(op)
      .Cases({"permute", "transpose", "t", "numpy_t", "slice", "select", "view",
              "_unsafe_view", "reshape", "unsqueeze", "squeeze", "flatten",
              "unflatten", "narrow", "clone", "alias", "contiguous"},
             layout)
      .Case("expand", repeat)
      .Case("mul", product)
      .Cases({"div", "neg"}, scale)
      .Cases({"pow", "square"}, square)
      .Default(std::nullopt);
}

/// Of values that calls compute on the way to their result.
static std::optional<FoldedSteps> stepsWithinCall(StringRef op) {
  static const FoldedSteps layout{true, false, false},
      scale{false, true, false};
  return StringSwitch<std::optional<FoldedSteps>>(op)
      .Cases({"linear", "matmul", "mm", "addmm", "index", "group_norm",
              "native_group_norm"},
             layout)
      .Cases({"add", "sub", "rsub"}, scale)
      .Default(std::nullopt);
}

std::optional<FoldedSteps> stepsOfNames(const TracedProgram &program,
                                        const Call &call,
                                        const onnx::TensorProto &folded) {
  std::optional<FoldedSteps> all = FoldedSteps();
  // What is moved as well has several ways to one tensor.
  bool isRepeated = true;
  auto allow = [&](std::optional<FoldedSteps> one) {
    if (!all || !one) {
      all = std::nullopt;
      return;
    }
    all->layout |= one->layout;
    all->scale |= one->scale;
    all->square |= one->square;
    isRepeated &= one->repeat;
    all->repeat = isRepeated;
  };
  auto isInternal = [](StringRef name) { return name.starts_with("val_"); };
  StringRef name = folded.name();
  if (program.target(name)) {
    // As the parameter is: what is gone between it and the call.
    bool isGone = false;
    for (const std::string &value : call.values)
      if (!program.isThere(value)) {
        isGone = true;
        allow(stepsOfOperator(operatorOfName(value)));
      }
    return isGone ? all : std::nullopt;
  }
  allow(isInternal(name) ? stepsWithinCall(call.text.op)
                         : stepsOfOperator(operatorOfName(name)));
  if (const std::vector<std::string> *from = program.foldedFrom(name))
    for (const std::string &each : *from) {
      const SignatureInput *input = program.target(each);
      if (input && input->kind != SignatureInput::Parameter)
        return std::nullopt;
      if (!input && !isInternal(each))
        allow(stepsOfOperator(operatorOfName(each)));
    }
  return all;
}

//===-- What bytes show ---------------------------------------------------===//

namespace {
/// Which elements of a parameter are read, in which order.
struct Reading {
  SmallVector<int64_t, 4> permutation, shape, strides;
  /// The sliced dimension of the permuted parameter; -1: none.
  int64_t dim = -1, start = 0;

  int64_t count() const {
    int64_t product = 1;
    for (int64_t size : shape)
      product *= size;
    return product;
  }
  /// Calls `visit(place in the reading, offset in the parameter)` until it
  /// returns false; true if it never did.
  bool forEach(function_ref<bool(int64_t, int64_t)> visit) const {
    SmallVector<int64_t, 4> at(shape.size(), 0);
    int64_t offset = dim < 0 ? 0 : start * strides[dim];
    int64_t total = count();
    for (int64_t place = 0; place < total; ++place) {
      if (!visit(place, offset))
        return false;
      for (size_t d = shape.size(); d-- > 0;) {
        offset += strides[d];
        if (++at[d] < shape[d])
          break;
        offset -= strides[d] * shape[d];
        at[d] = 0;
      }
    }
    return true;
  }
};

class Derivation {
public:
  Derivation(const OnnxFile &file, const onnx::TensorProto &parameter,
             const onnx::TensorProto &folded, const FoldedSteps &allowed)
      : parameter(parameter), folded(folded), allowed(allowed),
        source(file.values(parameter)), target(file.values(folded)),
        elementSize(bitsOfElementType(parameter.data_type()).value_or(0) / 8) {}
  /// Whether there is a way, one or several.
  bool search();
  /// Whether the parameter is repeated along dimensions, as NumPy broadcasts.
  bool isRepeated() const;
  std::optional<std::vector<ParameterStep>> run();

private:
  void readings(function_ref<void(const Reading &)> visit) const;
  void tryReading(const Reading &reading);
  bool holdsAsItIs(const Reading &reading) const;
  bool holds(const Reading &reading, function_ref<float(float)> f) const;
  std::optional<double> findFactor(const Reading &reading) const;
  /// Whether the elements read differ at most by sign.
  bool isOneMagnitude(const Reading &reading) const;
  void found(const Reading &reading, std::optional<ParameterStep> last);
  float sourceAt(int64_t offset) const { return floatAt(source, offset); }
  static float floatAt(ArrayRef<char> data, int64_t index) {
    float value;
    std::memcpy(&value, data.data() + index * sizeof(float), sizeof(float));
    return value;
  }

  const onnx::TensorProto &parameter, &folded;
  const FoldedSteps &allowed;
  ArrayRef<char> source, target;
  size_t elementSize;
  std::optional<Reading> first;
  std::optional<ParameterStep> firstLast;
  bool isAmbiguous = false;
};
} // namespace

/// Every permutation with every slice that has the right number of elements.
void Derivation::readings(function_ref<void(const Reading &)> visit) const {
  unsigned rank = parameter.dims_size();
  SmallVector<int64_t, 4> strides(rank, 1);
  for (unsigned dim = rank; dim-- > 1;)
    strides[dim - 1] = strides[dim] * parameter.dims(dim);
  int64_t wanted = int64_t(target.size() / elementSize);
  SmallVector<int64_t, 4> permutation = identityPermutation(rank);
  do {
    Reading reading;
    reading.permutation = permutation;
    for (int64_t from : permutation) {
      reading.shape.push_back(parameter.dims(int(from)));
      reading.strides.push_back(strides[from]);
    }
    int64_t all = reading.count();
    if (all == wanted) {
      visit(reading);
      continue;
    }
    for (unsigned dim = 0; dim < rank && wanted < all; ++dim) {
      int64_t others = all / reading.shape[dim];
      if (wanted % others != 0)
        continue;
      Reading part = reading;
      part.dim = dim;
      part.shape[dim] = wanted / others;
      for (; part.start + part.shape[dim] <= reading.shape[dim]; ++part.start)
        visit(part);
    }
  } while (std::next_permutation(permutation.begin(), permutation.end()));
}

bool Derivation::holdsAsItIs(const Reading &reading) const {
  return reading.forEach([&](int64_t place, int64_t offset) {
    return !std::memcmp(source.data() + offset * elementSize,
                        target.data() + place * elementSize, elementSize);
  });
}

bool Derivation::holds(const Reading &reading,
                       function_ref<float(float)> f) const {
  return reading.forEach([&](int64_t place, int64_t offset) {
    return f(sourceAt(offset)) == floatAt(target, place);
  });
}

bool Derivation::isOneMagnitude(const Reading &reading) const {
  std::optional<float> magnitude;
  return reading.forEach([&](int64_t, int64_t offset) {
    float value = std::abs(sourceAt(offset));
    bool isSame = value == magnitude.value_or(value);
    magnitude = value;
    return isSame;
  });
}

/// The number that every element was multiplied by: the quotient of the largest
/// one, or one of its neighbours, which rounding may have made of it.
std::optional<double> Derivation::findFactor(const Reading &reading) const {
  float largest = 0, product = 0;
  reading.forEach([&](int64_t place, int64_t offset) {
    float value = sourceAt(offset);
    if (std::abs(value) > std::abs(largest)) {
      largest = value;
      product = floatAt(target, place);
    }
    return true;
  });
  float quotient = product / largest;
  if (!std::isfinite(quotient))
    return std::nullopt;
  for (float factor : {quotient, std::nextafter(quotient, -INFINITY),
                       std::nextafter(quotient, INFINITY)})
    if (holds(reading, [&](float value) { return value * factor; }))
      return factor;
  return std::nullopt;
}

void Derivation::found(const Reading &reading,
                       std::optional<ParameterStep> last) {
  if (!first) {
    first = reading;
    firstLast = std::move(last);
    return;
  }
  // Two ways to write one reading are no ambiguity.
  std::vector<int64_t> offsets;
  first->forEach([&](int64_t, int64_t offset) {
    offsets.push_back(offset);
    return true;
  });
  isAmbiguous |= !reading.forEach(
      [&](int64_t place, int64_t offset) { return offsets[place] == offset; });
}

void Derivation::tryReading(const Reading &reading) {
  if (isAmbiguous)
    return;
  bool isWhole = reading.dim < 0 && is_sorted(reading.permutation);
  if (!allowed.layout && !isWhole)
    return;
  if (holdsAsItIs(reading)) {
    // Arithmetic that changes nothing today: 0 times 2, the square of 1.
    isAmbiguous |= allowed.scale || allowed.square;
    return found(reading, std::nullopt);
  }
  if (parameter.data_type() != onnx::TensorProto::FLOAT)
    return;
  // Of a value and its negative any power is a multiple.
  if (allowed.square && allowed.scale && isOneMagnitude(reading)) {
    isAmbiguous = true;
    return;
  }
  if (allowed.square &&
      holds(reading, [](float value) { return value * value; }))
    return found(reading, ParameterStep{ParameterStep::Square, {}});
  if (allowed.scale)
    if (std::optional<double> factor = findFactor(reading))
      found(reading, ParameterStep{ParameterStep::Scale, {}, *factor});
}

bool Derivation::search() {
  // Of more dimensions there are too many permutations to try.
  if (parameter.data_type() != folded.data_type() || target.empty() ||
      parameter.dims_size() > 5)
    return false;
  readings([&](const Reading &reading) { tryReading(reading); });
  return first || isAmbiguous;
}

bool Derivation::isRepeated() const {
  int64_t rank = folded.dims_size(), own = parameter.dims_size();
  if (parameter.data_type() != folded.data_type() || source.empty() ||
      elementSize == 0 || own > rank || target.size() <= source.size())
    return false;
  Reading all;
  int64_t stride = 1;
  for (int64_t dim = rank; dim-- > 0;) {
    int64_t at = dim - (rank - own),
            size = at < 0 ? 1 : parameter.dims(int(at));
    if (size != 1 && size != folded.dims(int(dim)))
      return false;
    all.shape.insert(all.shape.begin(), folded.dims(int(dim)));
    all.strides.insert(all.strides.begin(), size == 1 ? 0 : stride);
    stride *= size;
  }
  return holdsAsItIs(all);
}

std::optional<std::vector<ParameterStep>> Derivation::run() {
  if (allowed.repeat && isRepeated())
    return std::vector{ParameterStep{
        ParameterStep::Expand, {folded.dims().begin(), folded.dims().end()}}};
  if (!search() || isAmbiguous)
    return std::nullopt;
  std::vector<ParameterStep> steps;
  if (!is_sorted(first->permutation))
    steps.push_back({ParameterStep::Permute, first->permutation});
  if (first->dim >= 0)
    steps.push_back({ParameterStep::Slice,
                     {first->dim, first->start, first->shape[first->dim]}});
  SmallVector<int64_t, 4> shape(folded.dims().begin(), folded.dims().end());
  if (shape != first->shape)
    steps.push_back({ParameterStep::Reshape, shape});
  if (firstLast)
    steps.push_back(*firstLast);
  return steps;
}

std::optional<std::vector<ParameterStep>>
deriveFrom(const OnnxFile &file, const onnx::TensorProto &parameter,
           const onnx::TensorProto &folded, const FoldedSteps &allowed) {
  return Derivation(file, parameter, folded, allowed).run();
}

std::optional<std::vector<ParameterStep>>
deriveRows(const OnnxFile &file, const onnx::TensorProto &table,
           const onnx::TensorProto &folded) {
  size_t elementSize = bitsOfElementType(table.data_type()).value_or(0) / 8;
  ArrayRef<char> source = file.values(table), target = file.values(folded);
  if (table.dims_size() != 2 || table.data_type() != folded.data_type() ||
      elementSize == 0 || source.empty() || target.empty())
    return std::nullopt;
  int64_t width = table.dims(1), rank = folded.dims_size();
  size_t rowSize = width * elementSize;
  // Of rows that are equal, -1.
  llvm::StringMap<int64_t> numbers;
  for (int64_t row = 0; row < table.dims(0); ++row) {
    auto [known, isNew] = numbers.try_emplace(
        StringRef(source.data() + row * rowSize, rowSize), row);
    if (!isNew)
      known->second = -1;
  }
  std::optional<std::vector<ParameterStep>> steps;
  for (int64_t dim = 0; dim < rank; ++dim) {
    if (folded.dims(int(dim)) != width)
      continue;
    int64_t behind = 1;
    for (int64_t later = dim + 1; later < rank; ++later)
      behind *= folded.dims(int(later));
    SmallVector<int64_t, 4> rows;
    int64_t count = int64_t(target.size() / rowSize);
    std::string row(rowSize, 0);
    for (int64_t at = 0; at < count; ++at) {
      const char *first =
          target.data() +
          (at / behind * behind * width + at % behind) * elementSize;
      for (int64_t i = 0; i < width; ++i)
        std::memcpy(row.data() + i * elementSize,
                    first + i * behind * elementSize, elementSize);
      auto found = numbers.find(row);
      if (found == numbers.end() || found->second < 0 ||
          all_of(row, [](char byte) { return byte == 0; }))
        break;
      rows.push_back(found->second);
    }
    if (int64_t(rows.size()) != count)
      continue;
    if (steps)
      return std::nullopt;
    SmallVector<int64_t, 4> apart, permutation;
    for (int64_t each = 0; each < rank; ++each) {
      if (each != dim)
        apart.push_back(folded.dims(int(each)));
      permutation.push_back(each == dim ? rank - 1
                                        : each - (each > dim ? 1 : 0));
    }
    apart.push_back(width);
    bool countsUp = true;
    for (auto [i, number] : enumerate(rows))
      countsUp &= number == rows[0] + int64_t(i);
    steps.emplace();
    if (countsUp)
      steps->push_back({ParameterStep::Slice, {0, rows[0], count}});
    else
      steps->push_back({ParameterStep::Rows, rows});
    steps->push_back({ParameterStep::Reshape, apart});
    if (!is_sorted(permutation))
      steps->push_back({ParameterStep::Permute, permutation});
  }
  return steps;
}

bool mayDerive(const OnnxFile &file, const onnx::TensorProto &source,
               const onnx::TensorProto &folded, const FoldedSteps &allowed) {
  return Derivation(file, source, folded, allowed).search();
}

} // namespace accel::onnxio
