// Programs of reshapes and transposes, of parts of dimensions, and of shares of
// parts.

#include "RuleProperties.h"

using namespace mlir;
using namespace accel;
using namespace accel::test;
using namespace accel::equivalence;

/// Neighbouring dimensions, some of them merged: how many are in each group.
static SmallVector<int64_t> pickGroups(RuleProgram &p, int64_t dims) {
  SmallVector<int64_t> groups;
  while (dims > 0) {
    groups.push_back(1 + p.pick(std::min<int64_t>(dims, 3)));
    dims -= groups.back();
  }
  return groups;
}
static SmallVector<int64_t> merge(ArrayRef<int64_t> shape,
                                  ArrayRef<int64_t> groups) {
  SmallVector<int64_t> merged;
  for (int64_t group : groups) {
    int64_t size = 1;
    for (; group > 0; --group, shape = shape.drop_front())
      size *= shape.front();
    merged.push_back(size);
  }
  return merged;
}
static Value reshape(RuleProgram &p, OpBuilder &builder, Value x,
                     ArrayRef<int64_t> shape) {
  auto type = cast<RankedTensorType>(x.getType());
  return p.make<nn::ReshapeOp>(builder, type.clone(shape), x);
}
static SmallVector<int64_t> pickPermutation(RuleProgram &p, size_t dims) {
  SmallVector<int64_t> permutation;
  for (size_t dim = 0; dim < dims; ++dim)
    permutation.push_back(dim);
  for (int64_t &each : permutation)
    std::swap(each, permutation[p.pick(dims)]);
  return permutation;
}

/// Dimensions merged, or taken apart: in both programs, mostly in one way.
static void makeReshape(RuleProgram &p, RuleId rule) {
  SmallVector<int64_t> shape;
  for (int64_t more = 2 + p.pick(3); more > 0; --more)
    shape.push_back(p.pickOf<int64_t>({1, 2, 2, 3, 4}));
  SmallVector<int64_t> groups = pickGroups(p, shape.size());
  bool isMerged = p.chance(50);
  RuleProgram::Kinds kinds = {25, 15, 2, 5, 5, 0};
  Value a = p.takeWhole(isMerged ? ArrayRef(shape) : merge(shape, groups));
  reshape(p, p.whole, a, isMerged ? merge(shape, groups) : shape);
  Piece piece = p.pickPiece(a, kinds);
  Value x = p.take(piece);
  SmallVector<int64_t> held(shapeOf(x)), to;
  if (isMerged) {
    to = merge(held, groups);
  } else { // a rank's part of the first dimensions of each group
    ArrayRef<int64_t> left = shape;
    for (auto [group, size] : llvm::zip_equal(groups, held)) {
      SmallVector<int64_t> sizes(left.take_front(group));
      left = left.drop_front(group);
      int64_t whole = 1;
      for (int64_t each : sizes)
        whole *= each;
      for (int64_t &each : sizes)
        for (int64_t by : {2, 3, 4})
          if (whole > size && whole % by == 0 && (whole / by) % size == 0 &&
              each % by == 0) {
            each /= by;
            whole /= by;
          }
      if (!sizes.empty() && whole > 0 && size % whole == 0)
        sizes.front() *= size / whole;
      llvm::append_range(to, sizes);
    }
  }
  if (p.chance(10) && to.size() > 1)
    std::swap(to[0], to[1]);
  if (ShapedType::getNumElements(to) != ShapedType::getNumElements(held)) {
    p.isValid = false;
    return;
  }
  p.ask(reshape(p, p.local, x, to).getDefiningOp(), {rule});
}
static void makeMappedReshape(RuleProgram &p) { makeReshape(p, RuleId::Map); }

/// The same, and a transpose: what is digits of a position in both.
static void makeView(RuleProgram &p) {
  if (p.chance(40))
    return makeReshape(p, RuleId::View);
  SmallVector<int64_t> shape;
  for (int64_t more = 2 + p.pick(3); more > 0; --more)
    shape.push_back(p.pickOf<int64_t>({1, 2, 2, 3, 4}));
  SmallVector<int64_t> groups = pickGroups(p, shape.size()),
                       permutation = pickPermutation(p, shape.size());
  Value a = p.takeWhole(shape);
  Value turned = p.make<nn::TransposeOp>(p.whole, a, permutation);
  reshape(p, p.whole, turned, merge(shapeOf(turned), groups));
  reshape(p, p.whole, a, merge(shape, groups));
  Value x = p.take(p.pickPiece(a, {25, 12, 2, 8, 8, 0}));
  if (p.chance(50))
    permutation = pickPermutation(p, shape.size());
  Value moved = p.make<nn::TransposeOp>(p.local, x, permutation);
  p.ask(moved.getDefiningOp(), {RuleId::View});
  if (p.chance(60)) {
    Value made = reshape(p, p.local, moved, merge(shapeOf(moved), groups));
    p.ask(made.getDefiningOp(), {RuleId::View});
    if (p.chance(50)) // and back
      p.ask(reshape(p, p.local, made, shapeOf(moved)).getDefiningOp(),
            {RuleId::View});
  }
}

/// f(a), reshaped, as a cut or padded part of a + b is.
static void makePartsOfTerms(RuleProgram &p) {
  SmallVector<int64_t> shape = {p.pickOf<int64_t>({2, 3, 4}),
                                p.pickOf<int64_t>({1, 2, 4}),
                                p.pickOf<int64_t>({2, 3})};
  Value a = p.takeWhole(shape), b = p.takeWhole(shape);
  Value sum = p.make<nn::AddOp>(p.whole, a, b);
  SmallVector<int64_t> flat = {shape[0], shape[1] * shape[2]};
  Value view = reshape(p, p.whole, sum, flat);
  bool isPad = p.chance(60);
  int64_t more = p.pickOf<int64_t>({1, 2}), first = p.pick(2);
  double number = p.chance(60) ? 0 : 5;
  auto scalar = RankedTensorType::get({}, p.f64);
  auto change = [&](OpBuilder &builder, Value x) {
    SmallVector<int64_t> zeros(shapeOf(x).size(), 0),
        high = zeros, sizes(shapeOf(x)), ones(zeros.size(), 1);
    if (isPad) {
      high[0] = more;
      return Value(p.make<nn::PadOp>(
          builder, x, p.constant(builder, scalar, number), zeros, high));
    }
    zeros[0] = first;
    sizes[0] = 1;
    return Value(p.make<nn::SliceOp>(builder, x, zeros, sizes, ones));
  };
  change(p.whole, view);
  Piece piece = p.pickPiece(a, {20, 0, 0, 0, 0, 0});
  piece.dims[0] = Dim();
  SmallVector<Value> made;
  Value terms[] = {p.take(piece), p.take(p.likewise(piece, b))};
  if (p.chance(20))
    terms[1] = terms[0];
  for (Value term : terms) {
    Value part = change(p.local, term);
    p.ask(part.getDefiningOp(), {RuleId::PartsOfTerms});
    SmallVector<int64_t> held(shapeOf(part));
    made.push_back(reshape(p, p.local, part, {held[0], held[1] * held[2]}));
    p.ask(made.back().getDefiningOp(), {RuleId::View});
  }
  Value both = p.make<nn::AddOp>(p.local, made[0], made[1]);
  p.ask(both.getDefiningOp(), {RuleId::Map});
}

/// Slices, concatenations and padding of a dimension of several digits.
static void makeParts(RuleProgram &p) {
  int64_t parts = p.pickOf<int64_t>({2, 3, 4}),
          size = p.pickOf<int64_t>({2, 4}), rows = p.pickOf<int64_t>({1, 2, 4});
  SmallVector<int64_t> split = {parts, size, rows}, flat = {parts * size, rows};
  Value a = p.takeWhole(flat), b = p.takeWhole(flat);
  int64_t kind = p.pick(3), before = p.pick(parts),
          kept = 1 + p.pick(parts - before), more = 1 + p.pick(2);
  auto scalar = RankedTensorType::get({}, p.f64);
  double number = p.chance(60) ? 0 : 5;
  // `unit`: elements of a part that are one position of the dimension.
  auto change = [&](OpBuilder &builder, Value x, Value y, int64_t dim,
                    int64_t unit, int64_t error) {
    size_t rank = shapeOf(x).size();
    SmallVector<int64_t> zeros(rank, 0), ones(rank, 1), sizes(shapeOf(x)),
        high(rank, 0);
    if (kind == 0) {
      zeros[dim] = before * unit;
      sizes[dim] = kept * unit;
      if (error && p.chance(50))
        zeros[dim] += zeros[dim] > 0 ? -1 : 1; // other elements, as many
      else if (error && sizes[dim] > 1)
        --sizes[dim];
      if (zeros[dim] + sizes[dim] > shapeOf(x)[dim]) {
        p.isValid = false;
        return x;
      }
      return Value(p.make<nn::SliceOp>(builder, x, zeros, sizes, ones));
    }
    if (kind == 1)
      return Value(p.make<nn::ConcatOp>(builder, ValueRange{x, y}, dim));
    high[dim] = more * unit + error;
    return Value(p.make<nn::PadOp>(
        builder, x, p.constant(builder, scalar, error ? 0 : number), zeros,
        high));
  };
  change(p.whole, a, b, 0, size, 0);
  // A rank has its part of each part, or of rows.
  Piece piece = p.pickPiece(a, {25, 0, 0, 0, 0, 0});
  if (p.chance(60) && !piece.dims[0].axes.empty())
    piece.dims[0].order = {{size, 1}, {parts, size}};
  if (p.chance(70) || !piece.dims[0].order.empty()) {
    int64_t ranks = 1;
    for (StringAttr axis : piece.dims[0].axes)
      ranks *= p.getSize(axis);
    if (size % ranks != 0) {
      p.isValid = false;
      return;
    }
    piece.dims[0].order = {{size, 1}, {parts, size}};
    Piece other = p.likewise(piece, b);
    if (p.chance(10))
      other = p.pickPiece(b, {25, 0, 0, 20, 0, 50});
    Value x = p.take(piece), y = p.take(other);
    // [size / ranks · parts, rows] as [size / ranks, parts, rows].
    SmallVector<int64_t> held = {size / ranks, parts, shapeOf(x)[1]};
    if (shapeOf(x) != shapeOf(y)) {
      p.isValid = false;
      return;
    }
    Value u = reshape(p, p.local, x, held), v = reshape(p, p.local, y, held);
    p.ask(u.getDefiningOp(), {RuleId::View});
    p.ask(v.getDefiningOp(), {RuleId::View});
    Value made = change(p.local, u, v, p.chance(85) ? 1 : 0, 1, p.chance(10));
    p.ask(made.getDefiningOp(), {RuleId::Parts});
    return;
  }
  // Shares of parts: of each as many elements as a rank has, side by side.
  int64_t unit = size, ranks = 1;
  for (StringAttr axis : piece.dims[0].axes)
    ranks *= p.getSize(axis);
  if (p.chance(50) && ranks > 1 && size % ranks == 0) {
    piece.dims[0].parts = {std::vector<int64_t>(parts, size), ranks};
    unit = size / ranks;
  }
  Value x = p.take(piece), y = p.take(p.likewise(piece, b));
  Value made =
      change(p.local, x, y, 0, p.chance(90) ? unit : size / 2, p.chance(10));
  p.ask(made.getDefiningOp(), {RuleId::Parts});
}

/// Of parts of which ranks have shares: some cut out, or several joined.
static void makeShares(RuleProgram &p) {
  SmallVector<StringAttr> axes;
  int64_t by = 1;
  for (StringAttr axis : p.axes)
    if (p.getSize(axis) > 1 && p.chance(60)) {
      axes.push_back(axis);
      by *= p.getSize(axis);
    }
  if (by == 1) {
    p.isValid = false;
    return;
  }
  int64_t columns = p.pickOf<int64_t>({1, 2, 4});
  auto pickSizes = [&](int64_t count) {
    std::vector<int64_t> sizes;
    for (; count > 0; --count)
      sizes.push_back(by * p.pickOf<int64_t>({1, 1, 2, 3}));
    return sizes;
  };
  auto makePiece = [&](Value value, std::vector<int64_t> sizes) {
    Piece piece = p.pickPiece(value, {25, 5, 0, 0, 0, 60});
    piece.dims[0] = Dim();
    piece.dims[0].axes.assign(axes.begin(), axes.end());
    if (sizes.size() > 1)
      piece.dims[0].parts = {sizes, p.chance(93) ? by : by / 2};
    auto drop = [&](auto &from) {
      llvm::erase_if(from, [&](StringAttr axis) {
        return llvm::is_contained(axes, axis);
      });
    };
    drop(piece.dims[1].axes);
    drop(piece.partial);
    for (int64_t size : sizes)
      p.isValid &=
          piece.dims[0].parts.by > 0 && size % piece.dims[0].parts.by == 0;
    return piece;
  };
  if (p.chance(50)) {
    std::vector<int64_t> sizes = pickSizes(2 + p.pick(3));
    int64_t first = p.pick(sizes.size()),
            count = 1 + p.pick(sizes.size() - first), begin = 0, kept = 0,
            all = 0;
    for (auto [number, size] : llvm::enumerate(sizes)) {
      begin += int64_t(number) < first ? size : 0;
      kept += int64_t(number) >= first && int64_t(number) < first + count ? size
                                                                          : 0;
      all += size;
    }
    Value a = p.takeWhole({all, columns});
    p.make<nn::SliceOp>(p.whole, a, ArrayRef<int64_t>{begin, 0},
                        ArrayRef<int64_t>{kept, columns},
                        ArrayRef<int64_t>{1, 1});
    if (p.chance(30)) // as many, from elsewhere
      p.make<nn::SliceOp>(p.whole, a, ArrayRef<int64_t>{0, 0},
                          ArrayRef<int64_t>{kept, columns},
                          ArrayRef<int64_t>{1, 1});
    Value x = p.take(makePiece(a, sizes));
    int64_t start = begin / by;
    if (p.chance(15))
      start = p.pick(all / by - kept / by + 1);
    Value made = p.make<nn::SliceOp>(
        p.local, x, ArrayRef<int64_t>{start, 0},
        ArrayRef<int64_t>{kept / by, shapeOf(x)[1]}, ArrayRef<int64_t>{1, 1});
    p.ask(made.getDefiningOp(), {RuleId::CutShares});
    return;
  }
  SmallVector<Value> wholes, locals;
  for (int64_t count = 2 + p.pick(2); count > 0; --count) {
    std::vector<int64_t> sizes = pickSizes(1 + p.pick(2));
    int64_t all = 0;
    for (int64_t size : sizes)
      all += size;
    wholes.push_back(p.takeWhole({all, columns}));
    locals.push_back(p.take(makePiece(wholes.back(), sizes)));
  }
  p.make<nn::ConcatOp>(p.whole, ValueRange(wholes), 0);
  for (Value local : locals)
    p.isValid &= shapeOf(local)[1] == shapeOf(locals[0])[1];
  if (!p.isValid)
    return;
  if (p.chance(10))
    std::swap(locals[0], locals[1]);
  Value made = p.make<nn::ConcatOp>(p.local, ValueRange(locals), 0);
  p.ask(made.getDefiningOp(), {RuleId::JoinedShares});
}

ArrayRef<RuleProperty> test::getViewProperties() {
  static constexpr RuleProperty kProperties[] = {
      {RuleId::Map, "reshape", makeMappedReshape},
      {RuleId::View, "views", makeView},
      {RuleId::PartsOfTerms, "parts of terms", makePartsOfTerms},
      {RuleId::Parts, "parts", makeParts},
      {RuleId::CutShares, "shares", makeShares},
      {RuleId::JoinedShares, "shares", makeShares}};
  return kProperties;
}
