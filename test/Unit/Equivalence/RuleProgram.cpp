// Makes the two programs, and asks rules of them.

#include "RuleProgram.h"

#include "dialects/Accel/Accel.h"
#include "dialects/NN/Entry.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"

using namespace mlir;
using namespace accel;
using namespace accel::test;
using namespace accel::equivalence;

RuleProgram::RuleProgram(MLIRContext &context, uint64_t seed, int64_t points)
    : whole(&context), local(&context), loc(UnknownLoc::get(&context)),
      f64(Float64Type::get(&context)), random(seed) {
  std::string text = "dist.mesh @mesh [";
  std::vector<std::string> names = {"dp_replicate", "dp_shard", "cp", "tp",
                                    "mb"};
  int64_t left = points;
  for (int64_t count = 1 + pick(3); count > 0; --count) {
    size_t at = pick(names.size());
    int64_t size = std::min(pickOf<int64_t>({1, 2, 2, 2, 2, 3, 4}), left);
    left /= size;
    axes.push_back(StringAttr::get(&context, names[at]));
    text += (axes.size() > 1 ? ", \"" : "\"") + names[at] +
            "\" = " + std::to_string(size);
    names.erase(names.begin() + at);
  }
  module = parseSourceString<ModuleOp>(text + "]", &context);
  mesh = *module->getOps<dist::MeshOp>().begin();
  OpBuilder builder = OpBuilder::atBlockEnd(module->getBody());
  auto add = [&](StringRef name) {
    auto function = func::FuncOp::create(builder, loc, name,
                                         FunctionType::get(&context, {}, {}));
    function.addEntryBlock();
    return function;
  };
  wholeFunction = add("whole");
  localFunction = add("local");
  whole.setInsertionPointToEnd(&wholeFunction.front());
  local.setInsertionPointToEnd(&localFunction.front());
}

SmallVector<int64_t> RuleProgram::pickShape(int64_t least, int64_t most) {
  SmallVector<int64_t> shape(least + pick(most - least + 1));
  for (int64_t &size : shape)
    size = pickOf<int64_t>({1, 2, 2, 3, 4, 4, 6, 8});
  return shape;
}

Value RuleProgram::add(OpBuilder &builder, Operation *op) {
  ScopedDiagnosticHandler silent(builder.getContext(),
                                 [](Diagnostic &) { return success(); });
  isValid &= succeeded(verify(op));
  return op->getResult(0);
}

Value RuleProgram::takeWhole(ArrayRef<int64_t> shape, Type element,
                             int64_t bound, int64_t least) {
  Value value = wholeFunction.front().addArgument(
      RankedTensorType::get(shape, element), loc);
  bounds[value] = {least, bound};
  equal[value].resize(shape.size(), false);
  return value;
}

Piece RuleProgram::pickPiece(Value logical, Kinds kinds) {
  ArrayRef<int64_t> shape = shapeOf(logical);
  Piece piece;
  piece.logical = logical;
  SmallVector<StringAttr> left;
  for (StringAttr axis : axes)
    if (getSize(axis) > 1)
      left.push_back(axis);
  std::shuffle(left.begin(), left.end(), random);
  bool isAgain = last && chance(kinds.again);
  for (auto [number, size] : llvm::enumerate(shape)) {
    Dim &dim = piece.dims.emplace_back();
    if (isAgain && number < last->dims.size() &&
        shapeOf(last->logical)[number] == size && chance(92)) {
      Dim before = last->dims[number];
      bool isFree = llvm::all_of(before.axes, [&](StringAttr axis) {
        return llvm::is_contained(left, axis);
      });
      if (isFree && (!before.free || equal.contains(logical))) {
        dim = before;
        if (dim.padding && chance(30))
          dim.zeros = !dim.zeros;
        llvm::erase_if(left, [&](StringAttr axis) {
          return llvm::is_contained(dim.axes, axis);
        });
        continue;
      }
    }
    if (chance(kinds.free) && equal.contains(logical)) {
      dim.free = true;
      continue;
    }
    if (chance(kinds.padding)) {
      dim.padding = 1 + pick(3);
      dim.zeros = chance(50);
    }
    int64_t rest = size + dim.padding;
    while (!left.empty() && chance(55)) {
      int64_t ranks = getSize(left.back());
      if (rest % ranks != 0)
        break;
      rest /= ranks;
      dim.axes.push_back(left.back());
      left.pop_back();
    }
    if (dim.padding)
      continue;
    int64_t half = size % 2 == 0 && size > 2 ? 2 : 3;
    if (size > half && size % half == 0) {
      if (chance(kinds.order))
        dim.order = {{half, 1}, {size / half, half}};
      else if (chance(kinds.parts) && !dim.axes.empty())
        dim.parts = {{size / half, size - size / half}, size / rest};
      for (int64_t part : dim.parts.sizes)
        if (part % dim.parts.by != 0) {
          dim.parts = {};
          break;
        }
    }
  }
  if (isAgain && chance(85)) {
    for (StringAttr axis : last->partial)
      if (llvm::is_contained(left, axis))
        piece.partial.push_back(axis);
    piece.reduction = last->reduction;
  } else if (chance(kinds.partial)) {
    for (StringAttr axis : left)
      if (chance(70))
        piece.partial.push_back(axis);
    piece.reduction = pickOf({dist::Reduction::sum, dist::Reduction::sum,
                              dist::Reduction::sum, dist::Reduction::max});
  }
  piece.partial = PieceMaker(mesh).inOrder(piece.partial);
  if (piece.partial.empty())
    piece.reduction = dist::Reduction::sum;
  last = piece;
  return piece;
}

SmallVector<int64_t> RuleProgram::getShape(const Piece &piece) {
  SmallVector<int64_t> shape;
  for (auto [dim, size] : llvm::zip_equal(piece.dims, shapeOf(piece.logical))) {
    int64_t held = size + dim.padding;
    for (StringAttr axis : dim.axes)
      held /= getSize(axis);
    shape.push_back(held);
    if (dim.free && size % 2 == 0 && chance(40))
      shape.back() = size / 2;
  }
  return shape;
}

/// What is free is equal: of arguments that is for us to say.
void RuleProgram::noteEqual(const Piece &piece) {
  auto known = equal.find(piece.logical);
  for (auto [number, dim] : llvm::enumerate(piece.dims)) {
    isValid &= !dim.free || known != equal.end();
    if (dim.free && isValid)
      known->second[number] = true;
  }
}

Value RuleProgram::take(const Piece &piece) {
  noteEqual(piece);
  auto type = cast<RankedTensorType>(piece.logical.getType());
  Value value =
      localFunction.front().addArgument(type.clone(getShape(piece)), loc);
  given[value].known.pieces = {piece};
  return value;
}

Value RuleProgram::takeTerms(std::vector<std::vector<Piece>> terms) {
  const Piece &first = terms.front().front();
  auto type = cast<RankedTensorType>(first.logical.getType());
  SmallVector<int64_t> shape = getShape(first);
  Value value = localFunction.front().addArgument(type.clone(shape), loc);
  for (const auto &term : terms) {
    noteEqual(term.front());
    isValid &= PieceMaker(mesh).fits(term.front(), value.getType());
  }
  given[value].known.terms = std::move(terms);
  return value;
}

Value RuleProgram::takeSum(RankedTensorType type,
                           std::vector<std::vector<Piece>> terms,
                           dist::Reduction combines) {
  Value value = localFunction.front().addArgument(type, loc);
  for (const auto &term : terms) {
    noteEqual(term.front());
    isValid &= PieceMaker(mesh).fits(term.front(), type);
  }
  Known &known = given[value].known;
  known.sum = StringAttr::get(type.getContext(), "sum");
  known.terms = std::move(terms);
  known.combines = combines;
  return value;
}

Value RuleProgram::constant(OpBuilder &builder, RankedTensorType type,
                            double number) {
  Attribute element =
      isa<FloatType>(type.getElementType())
          ? Attribute(builder.getFloatAttr(type.getElementType(), number))
          : Attribute(
                builder.getIntegerAttr(type.getElementType(), int64_t(number)));
  return make<nn::ConstantOp>(builder, type,
                              DenseElementsAttr::get(type, element));
}

dist::AxesAttr RuleProgram::getAxes(ArrayRef<StringAttr> names) {
  SmallVector<StringRef> all(names.begin(), names.end());
  return dist::AxesAttr::get(module->getContext(), all);
}

void RuleProgram::begin() {
  if (!follower) {
    func::ReturnOp::create(whole, loc, outputs);
    wholeFunction.setFunctionType(FunctionType::get(
        module->getContext(), wholeFunction.front().getArgumentTypes(),
        ValueRange(outputs).getTypes()));
    for (unsigned number = 0; number < outputs.size(); ++number)
      wholeFunction.setResultAttr(
          number, nn::kOutputAttr,
          whole.getStringAttr("y" + std::to_string(number)));
    logical = std::make_unique<Logical>(wholeFunction);
    follower = std::make_unique<Follower>(*logical, mesh);
    for (auto &[value, what] : given)
      follower->at(value) = what.known;
  }
}

void RuleProgram::follow(Operation *end) {
  if (!isValid)
    return;
  ScopedDiagnosticHandler silent(module->getContext(),
                                 [](Diagnostic &) { return success(); });
  begin();
  for (Operation &op : localFunction.front()) {
    if (&op == end)
      break;
    if (sources.insert(&op).second)
      (void)follower->follow(&op);
  }
}

void RuleProgram::ask(Operation *op, ArrayRef<RuleId> rules) {
  if (!isValid)
    return;
  ScopedDiagnosticHandler silent(module->getContext(),
                                 [](Diagnostic &) { return success(); });
  begin();
  for (Operation &before : localFunction.front())
    if (before.getNumOperands() == 0 && sources.insert(&before).second)
      (void)follower->follow(&before);
  for (RuleId id : rules)
    for (const Rule &rule : Follower::getRules())
      if (rule.id == id)
        follower->apply(rule, op);
  asked = op;
}

void RuleProgram::declareWire(Type type) {
  (*module)->setAttr(kGradientWireAttr, TypeAttr::get(type));
}

void RuleProgram::accept(Operation *collective) {
  if (!isValid)
    return;
  follow(collective);
  ScopedDiagnosticHandler silent(module->getContext(),
                                 [](Diagnostic &) { return success(); });
  if (succeeded(follower->follow(collective)))
    asked = collective;
}

void RuleProgram::print(raw_ostream &os) {
  module->print(os);
  for (auto &[value, what] : given)
    for (const Piece &piece : what.known.pieces)
      os << value << " is " << PieceMaker(mesh).describe(piece) << " of "
         << piece.logical << "\n";
}
