// From claims to the parameter table.
#include "ParameterBuilder.h"
#include "ParameterRoles.h"
#include "mlir/IR/Diagnostics.h"
#include <cstring>

using namespace llvm;
using namespace mlir;

namespace accel::onnxio {

//===-- Uses and values ---------------------------------------------------===//

/// Uses in `graph`, whose enclosing graphs define `hidden` names of their own.
static void collectUses(const OnnxFile &file, const onnx::GraphProto &graph,
                        bool isMain, llvm::StringSet<> hidden,
                        std::vector<InitializerUse> &uses) {
  if (!isMain) {
    for (const onnx::ValueInfoProto &input : graph.input())
      hidden.insert(input.name());
    for (const onnx::TensorProto &tensor : graph.initializer())
      hidden.insert(tensor.name());
    for (const onnx::NodeProto &node : graph.node())
      for (const std::string &output : node.output())
        hidden.insert(output);
  }
  for (const onnx::NodeProto &node : graph.node()) {
    for (int i = 0; i < node.input_size(); ++i) {
      const onnx::TensorProto *tensor = file.findInitializer(node.input(i));
      if (tensor && !hidden.contains(node.input(i)))
        uses.push_back({&node, unsigned(i), tensor});
    }
    for (const onnx::AttributeProto &attribute : node.attribute()) {
      collectUses(file, attribute.g(), false, hidden, uses);
      for (const onnx::GraphProto &inner : attribute.graphs())
        collectUses(file, inner, false, hidden, uses);
    }
  }
}

std::vector<InitializerUse> initializerUses(const OnnxFile &file) {
  std::vector<InitializerUse> uses;
  collectUses(file, file.graph(), true, {}, uses);
  return uses;
}

bool isFloatTensor(const onnx::TensorProto &tensor) {
  using T = onnx::TensorProto;
  switch (tensor.data_type()) {
  case T::FLOAT:
  case T::DOUBLE:
  case T::FLOAT16:
  case T::BFLOAT16:
  case T::FLOAT8E4M3FN:
  case T::FLOAT8E4M3FNUZ:
  case T::FLOAT8E5M2:
  case T::FLOAT8E5M2FNUZ:
    return true;
  default:
    return false;
  }
}

bool isSingleElement(const onnx::TensorProto &tensor) {
  return llvm::all_of(tensor.dims(), [](int64_t size) { return size == 1; });
}

bool isUniform(const OnnxFile &file, const onnx::TensorProto &tensor) {
  ArrayRef<char> data = file.values(tensor);
  std::optional<unsigned> bits = bitsOfElementType(tensor.data_type());
  if (!bits || *bits < 8)
    return false;
  size_t size = *bits / 8;
  return data.size() <= size ||
         !std::memcmp(data.data(), data.data() + size, data.size() - size);
}

std::string printShape(ArrayRef<int64_t> shape) {
  std::string text;
  for (int64_t size : shape)
    text += (text.empty() ? "" : ", ") + std::to_string(size);
  return "[" + text + "]";
}

/// Shape of p where `tensor` = transpose(p, permutation).
static SmallVector<int64_t, 4> originalShape(const onnx::TensorProto &tensor,
                                             ArrayRef<int64_t> permutation) {
  SmallVector<int64_t, 4> shape(permutation.size());
  for (auto [i, from] : llvm::enumerate(permutation))
    shape[from] = tensor.dims(int(i));
  return shape;
}

/// Element strides of p's dimensions within `tensor`.
static SmallVector<int64_t, 4> originalStrides(const onnx::TensorProto &tensor,
                                               ArrayRef<int64_t> permutation) {
  SmallVector<int64_t, 4> strides(permutation.size());
  int64_t stride = 1;
  for (size_t i = permutation.size(); i-- > 0;) {
    strides[permutation[i]] = stride;
    stride *= tensor.dims(int(i));
  }
  return strides;
}

/// holdSame for matrices of which one is transposed: in tiles, since walking a
/// vocabulary's table down its columns misses the cache at every element.
static bool isTransposed(const char *a, const char *b, int64_t rows,
                         int64_t columns, size_t size) {
  constexpr int64_t tile = 32;
  for (int64_t row0 = 0; row0 < rows; row0 += tile)
    for (int64_t column0 = 0; column0 < columns; column0 += tile)
      for (int64_t row = row0; row < std::min(row0 + tile, rows); ++row)
        for (int64_t column = column0;
             column < std::min(column0 + tile, columns); ++column)
          if (std::memcmp(a + (row * columns + column) * size,
                          b + (column * rows + row) * size, size))
            return false;
  return true;
}

bool holdSame(const OnnxFile &file, const onnx::TensorProto &a,
              ArrayRef<int64_t> pa, const onnx::TensorProto &b,
              ArrayRef<int64_t> pb) {
  SmallVector<int64_t, 4> shape = originalShape(a, pa);
  if (a.data_type() != b.data_type() || shape != originalShape(b, pb))
    return false;
  ArrayRef<char> dataA = file.values(a), dataB = file.values(b);
  if (dataA.size() != dataB.size())
    return false;
  if (pa == pb || dataA.empty())
    return dataA == dataB;
  std::optional<unsigned> bits = bitsOfElementType(a.data_type());
  if (!bits || *bits < 8)
    return false;
  size_t size = *bits / 8;
  if (shape.size() == 2) // two permutations that differ
    return isTransposed(dataA.data(), dataB.data(), a.dims(0), a.dims(1), size);
  SmallVector<int64_t, 4> stepA = originalStrides(a, pa),
                          stepB = originalStrides(b, pb);
  SmallVector<int64_t, 4> at(shape.size(), 0);
  int64_t offsetA = 0, offsetB = 0;
  for (;;) {
    if (std::memcmp(dataA.data() + offsetA * size,
                    dataB.data() + offsetB * size, size))
      return false;
    size_t dim = shape.size();
    for (;;) {
      if (dim-- == 0)
        return true;
      offsetA += stepA[dim];
      offsetB += stepB[dim];
      if (++at[dim] < shape[dim])
        break;
      offsetA -= stepA[dim] * shape[dim];
      offsetB -= stepB[dim] * shape[dim];
      at[dim] = 0;
    }
  }
}

//===-- The builder -------------------------------------------------------===//

unsigned ParameterBuilder::add(StringRef name) {
  Draft draft;
  draft.name = name.str();
  drafts.push_back(std::move(draft));
  byName.try_emplace(name, drafts.size() - 1);
  return drafts.size() - 1;
}

std::optional<unsigned> ParameterBuilder::find(StringRef name) const {
  auto it = byName.find(name);
  if (it == byName.end())
    return std::nullopt;
  return representative(it->second);
}

void ParameterBuilder::claim(unsigned parameter, const InitializerUse &use,
                             ArrayRef<int64_t> permutation, std::string why) {
  Draft &draft = drafts[representative(parameter)];
  if (draft.why.empty())
    draft.why = std::move(why);
  draft.claims.push_back(
      {use, SmallVector<int64_t, 4>(permutation.begin(), permutation.end())});
}

void ParameterBuilder::derive(unsigned parameter, const InitializerUse &use,
                              std::vector<ParameterStep> steps) {
  drafts[representative(parameter)].derived.push_back({use, std::move(steps)});
}

bool ParameterBuilder::unfold(unsigned parameter, const InitializerUse &use,
                              const FoldedParameter &undone, std::string why) {
  Draft &draft = drafts[representative(parameter)];
  if (undone.steps.empty() ||
      undone.steps.front().kind == ParameterStep::Permute) {
    if (draft.folded)
      return false;
    claim(parameter, use,
          undone.steps.empty() ? identityPermutation(undone.shape.size())
                               : undone.steps.front().values,
          std::move(why));
    return true;
  }
  if (!draft.claims.empty() || (draft.folded && draft.folded != use.tensor))
    return false;
  draft.folded = use.tensor;
  draft.undone = undone;
  if (draft.why.empty())
    draft.why = std::move(why);
  draft.derived.push_back({use, undone.steps});
  return true;
}

const InitializerUse *
ParameterBuilder::firstClaim(unsigned parameter,
                             SmallVectorImpl<int64_t> &permutation) const {
  const Draft &draft = drafts[representative(parameter)];
  if (draft.claims.empty())
    return nullptr;
  permutation.assign(draft.claims.front().permutation);
  return &draft.claims.front().use;
}

void ParameterBuilder::forEachClaim(
    unsigned parameter,
    llvm::function_ref<void(const InitializerUse &)> visit) const {
  for (const Claim &claim : drafts[parameter].claims)
    visit(claim.use);
  for (const Derived &derived : drafts[parameter].derived)
    visit(derived.use);
}

void ParameterBuilder::forEachRestored(
    llvm::function_ref<void(const onnx::NodeProto &, unsigned)> visit) const {
  for (const Restored &entry : restored)
    visit(*entry.node, representative(entry.parameter));
}

unsigned ParameterBuilder::representative(unsigned parameter) const {
  while (drafts[parameter].tiedTo >= 0)
    parameter = drafts[parameter].tiedTo;
  return parameter;
}

unsigned ParameterBuilder::tie(unsigned a, unsigned b, std::string why) {
  unsigned first = std::min(representative(a), representative(b));
  unsigned second = std::max(representative(a), representative(b));
  if (first == second)
    return first;
  Draft &into = drafts[first], &from = drafts[second];
  from.tiedTo = int(first);
  into.aliases.push_back(from.name);
  llvm::append_range(into.aliases, from.aliases);
  llvm::append_range(into.claims, from.claims);
  llvm::append_range(into.derived, from.derived);
  if (!into.folded) {
    into.folded = from.folded;
    into.undone = from.undone;
  }
  if (into.why.empty())
    into.why = from.why;
  into.why += (into.why.empty() ? "" : "; ") + why;
  into.omitted = false;
  if (from.removed && !into.removed) {
    into.removed = true;
    into.removedShape = from.removedShape;
    into.removedType = from.removedType;
  }
  return first;
}

void ParameterBuilder::restore(unsigned parameter, const onnx::NodeProto &node,
                               int operand, ArrayRef<int64_t> shape,
                               int32_t dtype, std::string why) {
  unsigned number = representative(parameter);
  Draft &draft = drafts[number];
  draft.removed = true;
  draft.removedShape.assign(shape.begin(), shape.end());
  draft.removedType = dtype;
  if (draft.why.empty())
    draft.why = std::move(why);
  restored.push_back({&node, operand, number});
}

/// The distinct initializers of a draft in the file's order, checked to agree.
LogicalResult ParameterBuilder::collectInitializers(const Draft &draft,
                                                    StringRef remedy,
                                                    Parameter &into) {
  std::vector<const Claim *> claims;
  for (const Claim &claim : draft.claims) {
    bool known = llvm::any_of(claims, [&](const Claim *other) {
      return other->use.tensor == claim.use.tensor &&
             other->permutation == claim.permutation;
    });
    if (!known)
      claims.push_back(&claim);
  }
  // Tensors of one repeated field: addresses order them only where the field is
  // contiguous, so go by place.
  auto place = [&](const Claim *claim) {
    const auto &all = file.graph().initializer();
    return llvm::find_if(all,
                         [&](const onnx::TensorProto &tensor) {
                           return &tensor == claim->use.tensor;
                         }) -
           all.begin();
  };
  if (claims.size() > 1)
    llvm::stable_sort(claims, [&](const Claim *a, const Claim *b) {
      return place(a) < place(b);
    });
  for (const Claim *claim : claims) {
    const onnx::TensorProto &tensor = *claim->use.tensor;
    const Claim &first = *claims.front();
    if (claim != &first && !holdSame(file, *first.use.tensor, first.permutation,
                                     tensor, claim->permutation))
      return emitError(file.location(*claim->use.node))
             << "initializers '" << first.use.tensor->name() << "' and '"
             << tensor.name() << "' both stand for parameter '" << draft.name
             << "', but hold different values; " << remedy;
    into.initializers.push_back({tensor.name(), claim->permutation});
  }
  const Claim &first = *claims.front();
  into.shape = originalShape(*first.use.tensor, first.permutation);
  into.hasShape = true;
  into.dtype = first.use.tensor->data_type();
  return success();
}

const onnx::TensorProto *
ParameterBuilder::findOriginal(const Draft &draft) const {
  SmallVector<StringRef> names{draft.name};
  llvm::append_range(names, draft.aliases);
  for (StringRef name : names)
    if (const onnx::TensorProto *tensor = file.findInitializer(name);
        tensor && file.isOriginal(*tensor))
      return tensor;
  return nullptr;
}

FailureOr<ParameterTable> ParameterBuilder::finish(StringRef remedy) {
  ParameterTable table;
  table.exportRemedy = remedy;
  std::vector<int> numbers(drafts.size(), -1);
  llvm::StringMap<SmallVector<unsigned>> owners;
  for (unsigned i = 0; i < drafts.size(); ++i) {
    Draft &draft = drafts[i];
    if (draft.tiedTo >= 0 || draft.omitted)
      continue;
    Parameter parameter;
    parameter.name = draft.name;
    parameter.aliases = draft.aliases;
    parameter.why = draft.why;
    unsigned number = table.parameters.size();
    numbers[i] = int(number);
    if (!draft.claims.empty()) {
      if (failed(collectInitializers(draft, remedy, parameter)))
        return failure();
      const onnx::TensorProto *original = findOriginal(draft);
      const Claim &claim = draft.claims.front();
      if (original &&
          !holdSame(file, *original, identityPermutation(original->dims_size()),
                    *claim.use.tensor, claim.permutation))
        return emitError(file.location(*claim.use.node))
               << "initializer '" << claim.use.tensor->name()
               << "' stands for parameter '" << draft.name
               << "', which has other values in --original-weights: expected "
                  "those that the model was exported with";
      for (const ParameterInitializer &held : parameter.initializers)
        if (!llvm::is_contained(owners[held.initializer], number))
          owners[held.initializer].push_back(number);
      for (const Claim &claim : draft.claims)
        table.uses[{claim.use.node, claim.use.operand}] = {number,
                                                           claim.permutation};
    } else if (const onnx::TensorProto *original =
                   draft.derived.empty() ? nullptr : findOriginal(draft)) {
      SmallVector<int64_t, 4> same = identityPermutation(original->dims_size());
      parameter.initializers.push_back({original->name(), same});
      parameter.shape.assign(original->dims().begin(), original->dims().end());
      parameter.hasShape = true;
      parameter.dtype = original->data_type();
      if (parameter.why.empty())
        parameter.why = "its value is among --original-weights, and what the "
                        "exporter folded is made of it bit by bit";
    } else if (draft.folded) {
      parameter.kind = ParameterKind::Unfolded;
      parameter.shape = draft.undone.shape;
      parameter.hasShape = true;
      parameter.dtype = any_of(draft.undone.steps,
                               [](const ParameterStep &step) {
                                 return step.kind == ParameterStep::Widen;
                               })
                            ? int32_t(onnx::TensorProto::FLOAT)
                            : draft.folded->data_type();
      parameter.initializers.push_back({draft.folded->name(), {}});
      parameter.steps = draft.undone.steps;
    } else if (draft.removed) {
      parameter.kind = ParameterKind::Removed;
      parameter.shape = draft.removedShape;
      parameter.hasShape = !draft.removedShape.empty();
      parameter.dtype = draft.removedType;
    } else {
      parameter.kind = ParameterKind::FoldedAway;
    }
    if (parameter.kind != ParameterKind::FoldedAway)
      for (const Derived &derived : draft.derived)
        table.uses[{derived.use.node, derived.use.operand}] = {
            number, {}, derived.steps};
    table.parameters.push_back(std::move(parameter));
  }
  for (Parameter &parameter : table.parameters)
    for (const ParameterInitializer &held : parameter.initializers)
      if (owners[held.initializer].size() > 1) {
        parameter.kind = ParameterKind::Merged;
        parameter.why += "; its initializer '" + held.initializer +
                         "' stands for " +
                         std::to_string(owners[held.initializer].size()) +
                         " parameters of equal value, which are kept apart";
        break;
      }
  for (const Restored &entry : restored) {
    int number = numbers[representative(entry.parameter)];
    if (number >= 0)
      table.restored.push_back({entry.node, entry.operand, unsigned(number)});
  }
  return table;
}

const Parameter *ParameterTable::find(StringRef name) const {
  for (const Parameter &parameter : parameters)
    if (StringRef(parameter.name) == name ||
        llvm::is_contained(parameter.aliases, name.str()))
      return &parameter;
  return nullptr;
}

} // namespace accel::onnxio
