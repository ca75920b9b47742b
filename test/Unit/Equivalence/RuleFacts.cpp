// What facts of the first proof mean: a piece, by the indices of its elements
// on each rank; what a value may be of which one is known; whether one is true.

#include "RuleProgram.h"

#include <cmath>

using namespace mlir;
using namespace accel;
using namespace accel::test;
using namespace accel::equivalence;

std::vector<RuleProgram::Point> RuleProgram::getPoints() {
  std::vector<Point> points;
  for (int64_t micro = 0;
       micro < mesh.findAxisSize(dist::MeshOp::kMicroBatchAxis).value_or(1);
       ++micro)
    for (int64_t rank = 0; rank < mesh.getRankCount(); ++rank)
      points.push_back({mesh, rank, micro});
  return points;
}

std::vector<RuleProgram::Point> RuleProgram::getGroup(Point point,
                                                      ArrayRef<StringAttr> of) {
  std::vector<Point> group;
  for (Point other : getPoints())
    if (llvm::all_of(axes, [&](StringAttr axis) {
          return llvm::is_contained(of, axis) ||
                 other.getCoordinate(axis) == point.getCoordinate(axis);
        }))
      group.push_back(other);
  return group;
}

std::vector<int64_t> RuleProgram::getIndices(const Dim &dim, int64_t size,
                                             int64_t held, Point point) {
  std::vector<int64_t> all;
  if (dim.free) {
    for (int64_t at = 0; at < held; ++at)
      all.push_back(at % size);
    return all;
  }
  if (!dim.parts.empty()) {
    for (int64_t share = 0; share < dim.parts.by; ++share) {
      int64_t start = 0;
      for (int64_t part : dim.parts.sizes) {
        for (int64_t at = 0; at < part / dim.parts.by; ++at)
          all.push_back(start + share * (part / dim.parts.by) + at);
        start += part;
      }
    }
  } else {
    for (int64_t at = 0; at < size; ++at) {
      int64_t index = dim.order.empty() ? at : 0, rest = at;
      for (const Digit &digit : llvm::reverse(dim.order)) {
        index += rest % digit.size * digit.stride;
        rest /= digit.size;
      }
      all.push_back(index);
    }
  }
  all.resize(size + dim.padding, -1);
  int64_t block = 0;
  for (StringAttr axis : dim.axes)
    block = block * getSize(axis) + point.getCoordinate(axis);
  return {all.begin() + block * held, all.begin() + (block + 1) * held};
}

RuleProgram::Numbers RuleProgram::cut(const Tensor &tensor, const Piece &piece,
                                      ArrayRef<int64_t> shape, Point point) {
  std::vector<std::vector<int64_t>> indices;
  for (auto [number, dim] : llvm::enumerate(piece.dims))
    indices.push_back(
        getIndices(dim, tensor.getShape()[number], shape[number], point));
  SmallVector<int64_t> strides = getRowMajorStrides(tensor.getShape());
  Numbers numbers;
  SmallVector<int64_t> at(shape.size(), 0);
  for (int64_t count = ShapedType::getNumElements(shape); count > 0; --count) {
    int64_t position = 0;
    bool isPadding = false;
    std::optional<double> number;
    for (auto [dim, index] : llvm::enumerate(at)) {
      int64_t from = indices[dim][index];
      if (from >= 0) {
        position += from * strides[dim];
        continue;
      }
      isPadding = true;
      if (piece.dims[dim].zeros)
        number = 0;
      else if (piece.dims[dim].extreme && !number)
        number = piece.dims[dim].extreme == dist::Reduction::max
                     ? -std::numeric_limits<double>::infinity()
                     : std::numeric_limits<double>::infinity();
    }
    numbers.push_back(isPadding ? number : tensor.asDouble(position));
    for (size_t dim = shape.size(); dim-- > 0;) {
      if (++at[dim] < shape[dim])
        break;
      at[dim] = 0;
    }
  }
  return numbers;
}

Tensor RuleProgram::getWhole(Value value) {
  Tensor &known = wholes[value];
  if (known)
    return known;
  if (Operation *op = value.getDefiningOp()) {
    SmallVector<Tensor> operands, results;
    for (Value operand : op->getOperands())
      operands.push_back(getWhole(operand));
    if (failed(evaluateOp(op, operands, EvaluationMode::Float64, results)))
      return {};
    for (auto [result, tensor] : llvm::zip(op->getResults(), results))
      wholes[result] = tensor;
    return wholes[value];
  }
  // Equal along dimensions of which pieces may be any.
  auto type = cast<RankedTensorType>(value.getType());
  Tensor tensor(type);
  std::vector<bool> &same = equal[value];
  SmallVector<int64_t> at(type.getRank(), 0),
      strides = getRowMajorStrides(type.getShape());
  for (int64_t element = 0; element < tensor.getNumElements(); ++element) {
    int64_t from = 0;
    for (size_t dim = 0; dim < at.size(); ++dim)
      from += same[dim] ? 0 : at[dim] * strides[dim];
    if (tensor.isFloat())
      tensor.mutableFloats()[element] =
          from == element ? draw() : tensor.floats()[from];
    else
      tensor.mutableInts()[element] =
          from == element ? bounds[value].first +
                                pick(bounds[value].second - bounds[value].first)
                          : tensor.ints()[from];
    for (size_t dim = at.size(); dim-- > 0;) {
      if (++at[dim] < type.getDimSize(dim))
        break;
      at[dim] = 0;
    }
  }
  return wholes[value] = tensor;
}

/// The terms of a value, by the number of a rank along `over`: equal along the
/// dimensions along which the value is.
std::vector<Tensor> RuleProgram::pickTerms(const Piece &piece) {
  Tensor from = getWhole(piece.logical);
  int64_t count = 1;
  for (StringAttr axis : piece.partial)
    count *= getSize(axis);
  std::vector<Tensor> terms(count, from);
  if (count == 1 || !from.isFloat())
    return terms;
  SmallVector<int64_t> strides = getRowMajorStrides(from.getShape());
  for (int64_t element = 0; element < from.getNumElements(); ++element) {
    int64_t first = element, chosen = pick(count);
    for (auto [number, dim] : llvm::enumerate(piece.dims))
      if (dim.free)
        first -= element / strides[number] % from.getShape()[number] *
                 strides[number];
    double left = from.floats()[element];
    for (int64_t number = 0; number < count; ++number) {
      double &term = terms[number].mutableFloats()[element];
      if (first != element)
        term = terms[number].floats()[first];
      else if (!std::isfinite(term))
        continue;
      else if (piece.reduction != dist::Reduction::sum)
        term -= number == chosen                          ? 0
                : piece.reduction == dist::Reduction::max ? pick(4)
                                                          : -pick(4);
      else if (number + 1 < count)
        left -= term = draw();
      else
        term = left;
    }
  }
  return terms;
}

/// One of the tensors that the piece may be: terms are random, and so is
/// padding, on each rank.
RuleProgram::Tensors RuleProgram::materialize(const Piece &piece,
                                              RankedTensorType type) {
  std::vector<Tensor> terms = pickTerms(piece);
  Tensors tensors(getPoints().size());
  for (Point point : getPoints()) {
    Tensor &tensor = tensors[number(point)];
    tensor = Tensor(type);
    int64_t own = 0;
    for (StringAttr axis : piece.partial)
      own = own * getSize(axis) + point.getCoordinate(axis);
    Numbers numbers = cut(terms[own], piece, type.getShape(), point);
    for (auto [element, value] : llvm::enumerate(numbers))
      if (!tensor.isFloat())
        tensor.mutableInts()[element] = int64_t(value.value_or(draw()));
      else if (value)
        tensor.mutableFloats()[element] = *value;
      else // whatever is there
        tensor.mutableFloats()[element] =
            chance(30) ? std::numeric_limits<double>::quiet_NaN() : draw();
  }
  return tensors;
}

RuleProgram::Tensors RuleProgram::materialize(Value argument) {
  auto type = cast<RankedTensorType>(argument.getType());
  const Known &known = given[argument].known;
  if (!known.pieces.empty())
    return materialize(known.pieces.front(), type);
  Tensors sum(getPoints().size());
  for (Point point : getPoints()) {
    Tensor &tensor = sum[number(point)];
    tensor = Tensor(type);
    if (known.sum)
      for (double &each : tensor.mutableFloats())
        each = draw();
  }
  if (known.sum)
    given[argument].sum = sum;
  for (const std::vector<Piece> &term : known.terms)
    for (auto [into, from] :
         llvm::zip_equal(sum, materialize(term.front(), type)))
      for (auto [a, b] : llvm::zip_equal(into.mutableFloats(), from.floats()))
        a = known.combines == dist::Reduction::sum ? a + b : std::max(a, b);
  return sum;
}

bool RuleProgram::evaluateLocal() {
  ScopedDiagnosticHandler silent(module->getContext(),
                                 [](Diagnostic &) { return success(); });
  SmallVector<Value> values;
  for (Operation &op : localFunction.front())
    llvm::append_range(values, op.getResults());
  func::ReturnOp::create(local, loc, values);
  localFunction.setFunctionType(FunctionType::get(
      module->getContext(), localFunction.front().getArgumentTypes(),
      ValueRange(values).getTypes()));
  for (auto &[value, what] : given)
    what.tensors = materialize(value);
  evaluate::Lockstep ranks(mesh, /*wholeTensors=*/false,
                           EvaluationMode::Float64);
  int64_t count = mesh.getRankCount();
  for (int64_t micro = 0; micro * count < int64_t(getPoints().size());
       ++micro) {
    SmallVector<evaluate::GroupTensors> arguments, results;
    for (BlockArgument argument : localFunction.front().getArguments()) {
      const Tensors &all = given[argument].tensors;
      arguments.emplace_back(all.begin() + micro * count,
                             all.begin() + (micro + 1) * count);
    }
    ranks.setMicroBatch(micro);
    if (failed(ranks.call(localFunction, arguments, results)))
      return false;
    for (auto [value, tensors] : llvm::zip_equal(values, results))
      llvm::append_range(locals[value], tensors);
  }
  return true;
}

bool RuleProgram::isClose(double found, double expected) {
  if (std::isnan(expected) || std::isnan(found))
    return std::isnan(expected) && std::isnan(found);
  if (std::isinf(expected) || std::isinf(found))
    return found == expected;
  return std::abs(found - expected) <= 1e-7 * (1 + std::abs(expected));
}

/// No axis does two things, and the shapes are those of the piece.
bool RuleProgram::isWellFormed(const Piece &piece, ArrayRef<int64_t> shape) {
  llvm::SmallDenseSet<StringAttr> used;
  for (StringAttr axis : piece.partial)
    if (!used.insert(axis).second)
      return false;
  for (auto [number, dim] : llvm::enumerate(piece.dims)) {
    int64_t ranks = 1, size = shapeOf(piece.logical)[number];
    for (StringAttr axis : dim.axes) {
      ranks *= getSize(axis);
      if (!used.insert(axis).second)
        return false;
    }
    if (!dim.free && shape[number] * ranks != size + dim.padding)
      return false;
  }
  return piece.dims.size() == shape.size();
}

bool RuleProgram::isTrue(const Piece &piece, const Tensors &tensors) {
  ArrayRef<int64_t> shape = tensors.front().getShape();
  Tensor from = getWhole(piece.logical);
  if (!from || !isWellFormed(piece, shape) ||
      from.getElementType() != tensors.front().getElementType())
    return false;
  SmallVector<StringAttr> others;
  for (StringAttr axis : axes)
    if (!llvm::is_contained(piece.partial, axis) &&
        llvm::none_of(piece.dims, [&](const Dim &dim) {
          return llvm::is_contained(dim.axes, axis);
        }))
      others.push_back(axis);
  SmallVector<int64_t> strides = getRowMajorStrides(shape);
  for (Point point : getPoints()) {
    std::vector<Point> group = getGroup(point, piece.partial);
    Numbers expected = cut(from, piece, shape, point);
    // A term too is the same on ranks that the piece does not tell apart, and
    // equal along dimensions along which the value is.
    const Tensor &own = tensors[number(point)],
                 &alike = tensors[number(getGroup(point, others).front())];
    for (int64_t element = 0; element < own.getNumElements(); ++element) {
      int64_t first = element;
      for (auto [number, dim] : llvm::enumerate(piece.dims))
        if (dim.free)
          first -= element / strides[number] % shape[number] * strides[number];
      if (expected[element] && std::isfinite(*expected[element]) &&
          (!isClose(own.asDouble(element), alike.asDouble(element)) ||
           !isClose(own.asDouble(element), own.asDouble(first))))
        return false;
    }
    for (auto [element, number] : llvm::enumerate(expected)) {
      // A sum of terms is the value where this is a finite number.
      if (!number || (!piece.partial.empty() && !std::isfinite(*number)))
        continue;
      bool isSum = piece.reduction == dist::Reduction::sum;
      double found = 0;
      for (auto [at, other] : llvm::enumerate(group)) {
        double term = tensors[this->number(other)].asDouble(element);
        if (at == 0 || isSum)
          found += term;
        else
          found = piece.reduction == dist::Reduction::max
                      ? std::max(found, term)
                      : std::min(found, term);
      }
      if (!isClose(found, *number))
        return false;
    }
  }
  return true;
}

bool RuleProgram::isTrue(const View &view, const Tensors &tensors) {
  Tensor from = getWhole(view.root);
  ArrayRef<int64_t> shape = tensors.front().getShape();
  if (!from || view.dims.size() != shape.size())
    return false;
  for (Point point : getPoints()) {
    std::vector<Point> group = getGroup(point, view.partial);
    int64_t base = 0;
    for (auto &[axis, digit] : view.ranks)
      base += point.getCoordinate(axis) * digit.stride;
    SmallVector<int64_t> at(shape.size(), 0);
    for (int64_t element = 0; element < tensors.front().getNumElements();
         ++element) {
      int64_t position = base;
      for (auto [dim, digits] : llvm::enumerate(view.dims)) {
        int64_t rest = at[dim];
        for (const ViewDigit &digit : llvm::reverse(digits)) {
          int64_t held = digit.held ? digit.held : digit.size;
          position += rest % held * digit.stride;
          rest /= held;
        }
        if (rest != 0)
          return false;
      }
      for (auto &[range, parts] : view.interleaved) {
        int64_t digit = position / range.stride % range.size;
        Dim dim;
        dim.parts = parts;
        position +=
            (getIndices(dim, range.size, range.size, point)[digit] - digit) *
            range.stride;
      }
      bool isSum = view.reduction == dist::Reduction::sum;
      double found = 0;
      for (auto [index, other] : llvm::enumerate(group)) {
        double term = tensors[number(other)].asDouble(element);
        if (index == 0 || isSum)
          found += term;
        else
          found = view.reduction == dist::Reduction::max
                      ? std::max(found, term)
                      : std::min(found, term);
      }
      if (position >= from.getNumElements() ||
          !isClose(found, from.asDouble(position)))
        return false;
      for (size_t dim = shape.size(); dim-- > 0;) {
        if (++at[dim] < shape[dim])
          break;
        at[dim] = 0;
      }
    }
  }
  return true;
}

/// Each way to read the terms: what ranks' terms come to is what all come to.
bool RuleProgram::areTrue(const std::vector<std::vector<Piece>> &terms,
                          const Tensors &tensors) {
  ArrayRef<int64_t> shape = tensors.front().getShape();
  auto isTrueOf = [&](ArrayRef<const Piece *> chosen) {
    Axes all;
    for (const Piece *piece : chosen) {
      if (!isWellFormed(*piece, shape))
        return false;
      for (StringAttr axis : piece->partial)
        if (!llvm::is_contained(all, axis))
          all.push_back(axis);
    }
    for (Point point : getPoints()) {
      std::vector<Point> group = getGroup(point, all);
      Numbers expected(tensors.front().getNumElements(), 0.);
      for (const Piece *piece : chosen)
        for (Point other : group) {
          bool isFirst = llvm::all_of(piece->partial, [&](StringAttr axis) {
            return other.getCoordinate(axis) == 0;
          });
          Numbers own = cut(getWhole(piece->logical), *piece, shape, other);
          for (auto [sum, term] : llvm::zip_equal(expected, own))
            if (!term || !sum || !piece->isSum())
              sum.reset();
            else if (isFirst)
              *sum += *term;
        }
      for (auto [element, number] : llvm::enumerate(expected)) {
        double found = 0;
        for (Point other : group)
          found += tensors[this->number(other)].asDouble(element);
        if (number && !isClose(found, *number))
          return false;
      }
    }
    return true;
  };
  std::vector<const Piece *> first;
  for (const std::vector<Piece> &term : terms)
    first.push_back(&term.front());
  for (size_t term = 0; term < terms.size(); ++term)
    for (const Piece &piece : terms[term]) {
      std::vector<const Piece *> chosen = first;
      chosen[term] = &piece;
      if (!isTrueOf(chosen))
        return false;
    }
  return true;
}

/// What the sum over micro-batches was before.
RuleProgram::Tensors RuleProgram::getSum() {
  for (auto &[value, what] : given)
    if (what.known.sum)
      return what.sum;
  return {};
}

/// The largest, or smallest, of what was there and a term of which no rank has
/// a part only.
bool RuleProgram::isCombination(const Known &known, const Tensors &found) {
  if (known.terms.size() != 1)
    return false;
  Tensors before = getSum();
  for (const Piece &piece : known.terms.front())
    for (Point point : getPoints()) {
      if (!piece.partial.empty())
        continue;
      const Tensor &tensor = found[number(point)];
      Numbers terms =
          cut(getWhole(piece.logical), piece, tensor.getShape(), point);
      for (auto [element, term] : llvm::enumerate(terms)) {
        double old = before[number(point)].floats()[element];
        if (term && !isClose(tensor.floats()[element],
                             known.combines == dist::Reduction::max
                                 ? std::max(old, *term)
                                 : std::min(old, *term)))
          return false;
      }
    }
  return true;
}

RuleProgram::Verdict RuleProgram::check(std::string &why) {
  if (!isValid || !asked)
    return Verdict::NoProgram;
  bool isAny = false;
  for (Value result : asked->getResults()) {
    Known &known = follower->at(result);
    isAny |= !known.pieces.empty() || !known.terms.empty() ||
             !known.views.empty() || known.splat || !known.dealt.empty() ||
             !known.turned.empty() || known.formula;
  }
  if (!isAny)
    return Verdict::Nothing;
  if (!evaluateLocal())
    return Verdict::NoProgram;
  for (Value result : asked->getResults()) {
    Known &known = follower->at(result);
    const Tensors &found = locals[result];
    for (const Piece &piece : known.pieces)
      if (!isTrue(piece, found)) {
        llvm::raw_string_ostream(why)
            << PieceMaker(mesh).describe(piece) << " of " << piece.logical;
        return Verdict::Unsound;
      }
    for (const View &view : known.views)
      if (!isTrue(view, found)) {
        llvm::raw_string_ostream(why) << "a view of " << view.root;
        return Verdict::Unsound;
      }
    if (auto collective = dyn_cast<dist::CollectiveOpInterface>(asked);
        collective && collective.getWireType() &&
        !isWireDeclared(collective, known)) {
      why = "a rounding that is not declared";
      return Verdict::Unsound;
    }
    for (const Dealt &dealt : known.dealt)
      if (!isTrue(dealt, found)) {
        llvm::raw_string_ostream(why) << PieceMaker(mesh).describe(dealt.piece)
                                      << ", dealt, of " << dealt.piece.logical;
        return Verdict::Unsound;
      }
    for (const Turned &turned : known.turned)
      if (!isTrue(turned, found)) {
        llvm::raw_string_ostream os(why);
        os << PieceMaker(mesh).describe(turned.piece) << ", turned "
           << turned.turn << ", terms";
        for (int64_t term : turned.terms)
          os << " " << term;
        os << (turned.isLeveled ? ", from levels, of " : " of ")
           << turned.piece.logical;
        return Verdict::Unsound;
      }
    if (known.formula && known.formula != result) {
      why = "a formula is another's";
      return Verdict::Unsound;
    }
    if (std::optional<DealIndex> index = follower->getDealIndex(result);
        index && !isTrue(*index, found)) {
      why = "the numbers of a dealing";
      return Verdict::Unsound;
    }
    Tensors terms = found;
    if (known.sum && known.combines != dist::Reduction::sum) {
      if (!isCombination(known, found)) {
        why = "the largest so far";
        return Verdict::Unsound;
      }
      continue;
    }
    if (known.sum)
      for (auto [into, from] : llvm::zip_equal(terms, getSum()))
        for (auto [a, b] : llvm::zip_equal(into.mutableFloats(), from.floats()))
          a -= b;
    if (!known.terms.empty() && !areTrue(known.terms, terms)) {
      llvm::raw_string_ostream(why)
          << known.terms.size() << " terms, the first "
          << PieceMaker(mesh).describe(known.terms.front().front()) << " of "
          << known.terms.front().front().logical;
      return Verdict::Unsound;
    }
    for (const Tensor &tensor : found)
      for (int64_t at = 0; known.splat && at < tensor.getNumElements(); ++at) {
        double number =
            isa<FloatAttr>(known.splat)
                ? cast<FloatAttr>(known.splat).getValueAsDouble()
                : double(
                      cast<IntegerAttr>(known.splat).getValue().getSExtValue());
        if (!isClose(tensor.asDouble(at), number)) {
          why = "equal elements";
          return Verdict::Unsound;
        }
      }
    if (std::optional<Offset> offset = follower->getOffset(result))
      for (Point point : getPoints()) {
        int64_t expected = 0;
        for (StringAttr axis : offset->axes)
          expected = expected * getSize(axis) + point.getCoordinate(axis);
        expected *= offset->factor;
        const Tensor &tensor = found[number(point)];
        for (int64_t at = 0; at < tensor.getNumElements(); ++at)
          if (!isClose(tensor.asDouble(at), double(expected))) {
            why = "an offset";
            return Verdict::Unsound;
          }
      }
  }
  return Verdict::Sound;
}
