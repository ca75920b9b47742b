// Computes the products of linear layers in fp8.

#include "AmaxHistory.h"
#include "Passes.h"
#include "Quantize.h"
#include "dialects/Accel/Reports.h"
#include "dialects/NN/Chunks.h"
#include "dialects/NN/Entry.h"
#include "lib/Autodiff/StepStates.h"
#include <map>

using namespace mlir;

namespace accel::precision {
#define GEN_PASS_DEF_QUANTIZEPRODUCTSPASS
#include "lib/Precision/Passes.h.inc"

using autodiff::NNBuilder;
using autodiff::Write;

/// What the states of a quantizer are called, behind its name.
static constexpr StringLiteral kScale = "/scale", kHistory = "/amax_history";

static StringRef getName(TensorRole role) {
  switch (role) {
  case TensorRole::Input:
    return "input";
  case TensorRole::Weight:
    return "weight";
  case TensorRole::Gradient:
    return "gradient";
  }
  llvm_unreachable("a role");
}

static bool isShapeOnly(Operation *op) {
  return isa<nn::ReshapeOp, nn::TransposeOp>(op);
}

/// The tensor that an operand views; of a weight the f32 that it rounds. With
/// `hasParts` its parts along dimension 0 are those of the operand: a reshape
/// leaves them, a transpose does not.
static Value findBase(Value operand, TensorRole role, bool hasParts) {
  while (Operation *op = operand.getDefiningOp()) {
    bool isRounding = isa<nn::CastOp>(op) && role == TensorRole::Weight &&
                      getElementTypeOrSelf(op->getOperand(0)).isF32();
    bool keepsParts = role == TensorRole::Weight || isa<nn::ReshapeOp>(op);
    if (!isRounding && (!isShapeOnly(op) || (hasParts && !keepsParts)))
      break;
    operand = op->getOperand(0);
  }
  return operand;
}

/// `codes` as `operand` views its base.
static Value viewAs(OpBuilder &builder, Value operand, Value base,
                    Value codes) {
  if (operand == base)
    return codes;
  Operation *op = operand.getDefiningOp();
  Value inner = viewAs(builder, op->getOperand(0), base, codes);
  if (!isShapeOnly(op))
    return inner; // of a weight: the rounding
  Operation *view = builder.clone(*op);
  view->setOperand(0, inner);
  auto type = cast<RankedTensorType>(operand.getType());
  view->getResult(0).setType(type.clone(getElementTypeOrSelf(codes)));
  return view->getResult(0);
}

/// The chunk that makes each value, where all that it is made of is of one.
static llvm::DenseMap<Value, int64_t> findChunks(func::FuncOp entry) {
  llvm::DenseMap<Value, int64_t> chunks;
  nn::ArgumentStates states(entry);
  for (BlockArgument argument : entry.getArguments())
    chunks[argument] = states.findOwner(argument).value_or(0);
  for (Operation &op : entry.front()) {
    int64_t chunk = 0;
    for (Value operand : op.getOperands())
      chunk = std::max(chunk, chunks.lookup(operand));
    if (auto cut = dyn_cast<nn::CutOp>(op))
      chunk = cut.getTo();
    for (Value result : op.getResults())
      chunks[result] = chunk;
  }
  return chunks;
}

namespace {
/// What a quantizer with states of its own serves.
struct Slot {
  std::string name;
  int64_t chunk;
  FloatType format;
  llvm::SmallDenseSet<Value> measured; ///< tensors
  SmallVector<Value> amaxes;           ///< theirs
  Write scale, history;
};

/// A product to be quantized.
struct Product {
  nn::MatmulOp op;
  nn::ProductAttr tag;
  TensorRole roles[2];
  OperandRecipe recipes[2] = {};
  unsigned slots[2] = {}; ///< of the operands, with delayed scaling
  int64_t chunk = 0;      ///< that it is in

  StringRef getSite() const { return tag.getSite(); }
  bool isWgrad() const { return tag.getKind() == nn::ProductKind::wgrad; }
  /// The dimension of an operand that is summed over.
  int64_t getSummed(unsigned operand) const {
    nn::MatmulOp product = op;
    bool isLast =
        operand == 0 ? !product.getTransposeLhs() : product.getTransposeRhs();
    return cast<RankedTensorType>(product->getOperand(operand).getType())
               .getRank() -
           (isLast ? 1 : 2);
  }
};

/// One entry.
class EntryQuantizer {
public:
  EntryQuantizer(ModuleOp module, func::FuncOp entry, const Fp8Recipe &recipe)
      : module(module), entry(entry), recipe(recipe),
        context(module.getContext()) {}

  LogicalResult run();

private:
  void findProducts();
  void findSlots();
  LogicalResult declare();
  LogicalResult bind();
  LogicalResult check(const Product &product);
  Value divide(const NNBuilder &build, const Product &product, Value value);
  Quantized getQuantized(const NNBuilder &build, const Product &product,
                         unsigned operand);
  Quantized quantizeTensor(const NNBuilder &build, const Product &product,
                           unsigned operand);
  Value multiply(const NNBuilder &build, const Product &product);
  void write();

  ModuleOp module;
  func::FuncOp entry;
  const Fp8Recipe &recipe;
  MLIRContext *context;
  std::vector<Product> products;
  llvm::StringMap<int64_t> chunkOfSite;
  std::vector<Slot> slots;
  BlockArgument calls; ///< the step's counter of them
  llvm::DenseMap<std::pair<Value, Type>, Quantized> ofTensors;
  std::map<std::pair<void *, int64_t>, Quantized> ofRows; ///< by what is summed
};
} // namespace

/// In the order of the program, which is that of layers.
void EntryQuantizer::findProducts() {
  llvm::StringMap<llvm::SmallDenseSet<Value>> inputs; // by site
  llvm::DenseMap<Value, int64_t> chunks = findChunks(entry);
  entry.walk([&](nn::MatmulOp op) {
    auto tag = op->getAttrOfType<nn::ProductAttr>(nn::kProductAttr);
    if (!tag)
      return;
    Product product{op, tag, {TensorRole::Gradient, TensorRole::Weight}};
    product.chunk = chunks.lookup(op);
    if (tag.getKind() == nn::ProductKind::fprop) {
      inputs[tag.getSite()].insert(
          findBase(op.getLhs(), TensorRole::Input, recipe.blocks > 1));
      chunkOfSite.try_emplace(tag.getSite(), product.chunk);
      product.roles[0] = TensorRole::Input;
    } else if (tag.getKind() == nn::ProductKind::wgrad) {
      // With a transposed weight the gradient is the left one.
      product.roles[1] = TensorRole::Input;
      if (inputs[tag.getSite()].contains(
              findBase(op.getLhs(), TensorRole::Input, recipe.blocks > 1)))
        std::swap(product.roles[0], product.roles[1]);
    }
    for (unsigned operand : {0, 1})
      product.recipes[operand] =
          recipe.choose(context, tag.getKind(), product.roles[operand]);
    if (recipe.quantizes(tag.getKind()))
      products.push_back(product);
  });
}

/// A tensor that several layers read has one slot: each would see the same
/// largest magnitude.
void EntryQuantizer::findSlots() {
  llvm::StringMap<unsigned> byName;
  llvm::DenseMap<std::pair<Value, Type>, unsigned> byTensor;
  for (Product &product : products)
    for (unsigned operand : {0, 1}) {
      TensorRole role = product.roles[operand];
      FloatType format = product.recipes[operand].format;
      Value base =
          findBase(product.op->getOperand(operand), role, /*hasParts=*/false);
      auto [known, isNew] = byTensor.try_emplace({base, format}, slots.size());
      if (isNew) {
        std::string name =
            ("fp8/" + product.getSite() + "/" + getName(role)).str();
        auto [named, isFirst] = byName.try_emplace(name, slots.size());
        known->second = named->second;
        if (isFirst)
          slots.push_back({name,
                           chunkOfSite.lookup(product.getSite()),
                           format,
                           {},
                           {},
                           {},
                           {}});
      }
      product.slots[operand] = known->second;
    }
}

/// The states of the step's slots, before the counters, which are last.
LogicalResult EntryQuantizer::declare() {
  SymbolTable symbols(module);
  std::vector<autodiff::NewState> wanted;
  Type f32 = Float32Type::get(context);
  for (const Slot &slot : slots) {
    wanted.push_back({slot.name + kScale.str(), RankedTensorType::get({}, f32),
                      slot.chunk, 1});
    wanted.push_back({slot.name + kHistory.str(),
                      RankedTensorType::get({recipe.historyLength}, f32),
                      slot.chunk, 0});
  }
  nn::ArgumentStates known(entry);
  BlockArgument counters;
  for (BlockArgument argument : llvm::reverse(entry.getArguments())) {
    nn::StateOp state = known.find(argument);
    if (!state || state.getRole() != nn::StateRole::counter)
      break;
    counters = argument;
    if (!calls)
      calls = argument; // the last one
  }
  FailureOr<SmallVector<Write>> states = autodiff::declareStates(
      entry, symbols, counters, wanted, nn::StateRole::quantizer);
  if (failed(states))
    return failure();
  for (auto [index, slot] : llvm::enumerate(slots)) {
    slot.scale = (*states)[2 * index];
    slot.history = (*states)[2 * index + 1];
  }
  return success();
}

/// Another entry reads the scales that the step keeps.
LogicalResult EntryQuantizer::bind() {
  SymbolTable symbols(module);
  for (Slot &slot : slots) {
    auto state = symbols.lookup<nn::StateOp>(slot.name + kScale.str());
    if (!state)
      return entry.emitError() << "expected a step that has a scale '"
                               << slot.name << kScale << "', found none";
    unsigned place = entry.getNumArguments();
    auto attribute = DictionaryAttr::get(
        context,
        NamedAttribute(StringAttr::get(context, nn::kStateAttr),
                       FlatSymbolRefAttr::get(state.getSymNameAttr())));
    if (failed(entry.insertArgument(place, state.getType(), attribute,
                                    state.getLoc())))
      return failure();
    slot.scale = {state, entry.getArgument(place), nullptr};
  }
  return success();
}

/// Parts of a batch are parts of the first dimension.
LogicalResult EntryQuantizer::check(const Product &product) {
  if (recipe.blocks == 1)
    return success();
  nn::MatmulOp op = product.op;
  bool isParted = true;
  for (unsigned operand : {0, 1}) {
    TensorRole role = product.roles[operand];
    bool isOfTensor =
        product.recipes[operand].granularity == Granularity::Tensor;
    // Rows and blocks of features are the same in all parts.
    if (role == TensorRole::Weight || !(isOfTensor || product.isWgrad()))
      continue;
    auto hasParts = [&](Value value) {
      return cast<RankedTensorType>(value.getType()).getDimSize(0) %
                 recipe.blocks ==
             0;
    };
    Value value = op->getOperand(operand);
    isParted &= hasParts(value) &&
                (!isOfTensor || hasParts(findBase(value, role, true)));
    // Rows of the batch are summed over in the gradient of a weight alone.
    isParted &= product.isWgrad() == (product.getSummed(operand) == 0);
  }
  if (isParted)
    return success();
  return op.emitError()
         << "cannot give " << recipe.blocks
         << " parts of a batch scales of their own: expected the batch first, "
            "in a multiple of as many rows, in what the linear layer '"
         << product.getSite() << "' multiplies, found " << op.getLhs().getType()
         << " and " << op.getRhs().getType()
         << "; use --set fp8.recipe=delayed, whose scales are those of the "
            "whole batch, or leave the layer out (fp8.skip)";
}

/// What is multiplied, as it is; for the gradient of a weight as a matrix for
/// each part of the batch.
Value EntryQuantizer::divide(const NNBuilder &build, const Product &product,
                             Value value) {
  if (!product.isWgrad() || recipe.blocks == 1)
    return value;
  ArrayRef<int64_t> shape = NNBuilder::typeOf(value).getShape();
  return build.reshape(value,
                       {recipe.blocks, shape[0] / recipe.blocks, shape[1]});
}

/// A tensor is quantized as a whole, before views of it, once for all that
/// read it.
Quantized EntryQuantizer::quantizeTensor(const NNBuilder &build,
                                         const Product &product,
                                         unsigned operand) {
  TensorRole role = product.roles[operand];
  const OperandRecipe &own = product.recipes[operand];
  Value value = nn::MatmulOp(product.op)->getOperand(operand);
  Value base = findBase(value, role, recipe.blocks > 1);
  Quantized &known = ofTensors[{base, own.format}];
  if (!known.codes) {
    auto measure = [&](Value tensor) {
      return buildAmax(build, tensor,
                       role == TensorRole::Weight ? 1 : recipe.blocks);
    };
    Value scale;
    if (recipe.isDelayed()) {
      Slot &slot = slots[product.slots[operand]];
      // A weight that two chunks share is measured once, by its owner.
      Value source = base;
      while (auto cut = role == TensorRole::Weight
                            ? source.getDefiningOp<nn::CutOp>()
                            : nn::CutOp())
        source = cut.getInput();
      if (slot.measured.insert(source).second)
        slot.amaxes.push_back(measure(source));
      scale = slot.scale.old;
      // Of it each has its own codes: the scale goes where they are made, and
      // scalars that depend on it stay there.
      if (product.chunk != slot.chunk)
        scale = nn::CutOp::create(build.builder, build.loc, scale, slot.chunk,
                                  product.chunk);
    } else {
      scale =
          buildScale(build, measure(base), getLargest(own.format), own.rule);
    }
    known = quantize(build, base, scale, own.format);
  }
  Value codes = viewAs(build.builder, value, base, known.codes);
  return {divide(build, product, codes), known.inverse};
}

Quantized EntryQuantizer::getQuantized(const NNBuilder &build,
                                       const Product &product,
                                       unsigned operand) {
  if (product.recipes[operand].granularity == Granularity::Tensor)
    return quantizeTensor(build, product, operand);
  Value value = nn::MatmulOp(product.op)->getOperand(operand);
  int64_t dim = product.getSummed(operand);
  Quantized &known = ofRows[{value.getAsOpaquePointer(), dim}];
  if (!known.codes) {
    Value part = divide(build, product, value);
    known = quantizeRows(build, part,
                         dim + NNBuilder::typeOf(part).getRank() -
                             NNBuilder::typeOf(value).getRank(),
                         product.recipes[operand]);
  }
  return known;
}

/// A product times the inverses of an operand's scales, which are its rows' or
/// columns'.
static Value scaleRows(const NNBuilder &build, Value made, Quantized operand,
                       bool isLhs) {
  RankedTensorType type = NNBuilder::typeOf(made);
  int64_t rank = type.getRank(),
          own = NNBuilder::typeOf(operand.inverse).getRank();
  // A weight has no batch dimensions.
  SmallVector<int64_t> missing{isLhs ? rank - 1 : rank - 2};
  if (!isLhs && own == 1)
    missing = llvm::to_vector(llvm::seq(rank - 1));
  return build.mul(
      made, build.expand(build.cast(operand.inverse, type.getElementType()),
                         missing, type.getShape()));
}

/// Sums of codes are f32; in a program of f64 they are f64.
Value EntryQuantizer::multiply(const NNBuilder &build, const Product &product) {
  nn::MatmulOp op = product.op;
  Type result = op.getType().getElementType();
  auto isBlock = [](const OperandRecipe &own) {
    return own.granularity == Granularity::Block ||
           own.granularity == Granularity::Tile;
  };
  auto matmul = [&](Value lhs, Value rhs) {
    Value made =
        build.matmul(lhs, rhs, op.getTransposeLhs(), op.getTransposeRhs());
    made.getDefiningOp()->setAttr(nn::kProductAttr, product.tag);
    made.getDefiningOp()->setAttr(nn::kReasonAttr,
                                  StringAttr::get(context, recipe.describe()));
    return made;
  };
  Value made;
  if (isBlock(product.recipes[0])) {
    Value rounded[2];
    for (unsigned operand : {0, 1}) {
      Value part = divide(build, product, op->getOperand(operand));
      int64_t added = NNBuilder::typeOf(part).getRank() -
                      NNBuilder::typeOf(op->getOperand(operand)).getRank();
      rounded[operand] =
          roundBlocks(build, part, product.getSummed(operand) + added,
                      product.recipes[operand]);
    }
    made = matmul(rounded[0], rounded[1]);
  } else {
    Quantized operands[2];
    for (unsigned operand : {0, 1})
      operands[operand] = getQuantized(build, product, operand);
    auto codes = [&](unsigned operand) {
      Value value = operands[operand].codes;
      return result.isF64() ? build.cast(value, result) : value;
    };
    made = matmul(codes(0), codes(1));
    auto isOfTensor = [&](unsigned operand) {
      return product.recipes[operand].granularity == Granularity::Tensor;
    };
    Value lhs = operands[0].inverse, rhs = operands[1].inverse;
    if (isOfTensor(0) && isOfTensor(1)) {
      made = scaleParts(build, made, build.mul(lhs, build.like(rhs, lhs)));
    } else
      for (unsigned operand : {0, 1})
        made = isOfTensor(operand)
                   ? scaleParts(build, made, operands[operand].inverse)
                   : scaleRows(build, made, operands[operand], operand == 0);
  }
  if (product.isWgrad() && recipe.blocks > 1)
    made = build.sum(made, {0});
  return build.cast(made, result);
}

/// The new scales and histories, unless the step fails, as results.
void EntryQuantizer::write() {
  Operation *exit = entry.front().getTerminator();
  OpBuilder builder(exit);
  NNBuilder build{builder, NameLoc::get(builder.getStringAttr("fp8 scales"))};
  SmallVector<Value> results(exit->getOperands());
  SmallVector<DictionaryAttr> attributes;
  Value verdict;
  for (auto [index, value] : llvm::enumerate(results)) {
    attributes.push_back(
        builder.getDictionaryAttr(entry.getResultAttrs(index)));
    auto output = entry.getResultAttrOfType<StringAttr>(index, nn::kOutputAttr);
    if (output && output == kVerdictReport)
      verdict = value;
  }
  Value isFailed =
      build.compare(nn::ComparePredicate::eq, verdict,
                    build.splat(static_cast<double>(Verdict::Failed), verdict));
  auto add = [&](Write &write, Value value) {
    results.push_back(build.select(
        build.spread(isFailed, NNBuilder::typeOf(value).getShape()), write.old,
        value));
    attributes.push_back(builder.getDictionaryAttr(builder.getNamedAttr(
        nn::kStateAttr, FlatSymbolRefAttr::get(write.state.getSymNameAttr()))));
  };
  Value isDue;
  if (recipe.interval > 1)
    isDue = build.compare(nn::ComparePredicate::eq,
                          build.make<nn::ModOp>(build.add(calls, build.i64(1)),
                                                build.i64(recipe.interval)),
                          build.i64(0));
  for (Slot &slot : slots) {
    Value amax = slot.amaxes.front();
    for (Value other : ArrayRef(slot.amaxes).drop_front())
      amax = build.make<nn::MaxOp>(amax, other);
    QuantizerStates updated =
        updateHistory(build, {slot.scale.old, slot.history.old}, amax,
                      getLargest(slot.format), recipe);
    add(slot.scale, recipe.interval == 1
                        ? updated.scale
                        : build.select(isDue, updated.scale, slot.scale.old));
    add(slot.history, updated.history);
  }
  exit->setOperands(results);
  entry.setFunctionType(builder.getFunctionType(
      entry.getArgumentTypes(), ValueRange(results).getTypes()));
  entry.setAllResultAttrs(attributes);
}

LogicalResult EntryQuantizer::run() {
  findProducts();
  if (products.empty())
    return success();
  for (const Product &product : products)
    if (failed(check(product)))
      return failure();
  bool isStep = nn::getEntryKind(entry) == nn::EntryKind::step;
  if (recipe.isDelayed()) {
    findSlots();
    if (failed(isStep ? declare() : bind()))
      return failure();
  }
  for (const Product &product : products) {
    nn::MatmulOp op = product.op;
    OpBuilder builder(op);
    NNBuilder build{builder, op.getLoc()};
    op.replaceAllUsesWith(multiply(build, product));
    op.erase();
  }
  if (recipe.isDelayed() && isStep)
    write();
  return success();
}

namespace {
struct QuantizeProductsPass
    : impl::QuantizeProductsPassBase<QuantizeProductsPass> {
  using Base::Base;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    llvm::Expected<Fp8Recipe> parsed =
        parseFp8Recipe({recipe, format, margin, historyLength, amax, interval,
                        overrides, blocks});
    if (!parsed) {
      module.emitError() << llvm::toString(parsed.takeError());
      return signalPassFailure();
    }
    // The step first: the others read its states.
    SmallVector<func::FuncOp> entries = nn::getEntries(module);
    std::stable_partition(
        entries.begin(), entries.end(), [](func::FuncOp entry) {
          return nn::getEntryKind(entry) == nn::EntryKind::step;
        });
    for (func::FuncOp entry : entries)
      if (failed(EntryQuantizer(module, entry, *parsed).run()))
        return signalPassFailure();
  }
};
} // namespace
} // namespace accel::precision
