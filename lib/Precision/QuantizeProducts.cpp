// Computes the products of linear layers in fp8.

#include "DelayedScales.h"
#include "Nvfp4.h"
#include "Passes.h"
#include "Quantize.h"
#include "ScaledWeights.h"
#include "dialects/Accel/Accel.h"
#include "dialects/NN/Chunks.h"
#include "dialects/NN/Entry.h"
#include "lib/Autodiff/Random.h"
#include <map>

using namespace mlir;

namespace accel::precision {
#define GEN_PASS_DEF_QUANTIZEPRODUCTSPASS
#include "lib/Precision/Passes.h.inc"

using autodiff::NNBuilder;

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
  EntryQuantizer(func::FuncOp entry, const Fp8Recipe &recipe)
      : entry(entry), recipe(recipe), context(entry.getContext()),
        scales(entry, recipe) {}

  LogicalResult run();

private:
  void findProducts();
  void findSlots();
  LogicalResult check(const Product &product);
  Value divide(const NNBuilder &build, const Product &product, Value value);
  Quantized getQuantized(const NNBuilder &build, const Product &product,
                         unsigned operand);
  Quantized quantizeTensor(const NNBuilder &build, const Product &product,
                           unsigned operand);
  Value multiplyNvfp4(const NNBuilder &build, const Product &product);
  Value multiply(const NNBuilder &build, const Product &product);
  Value sumGradients(const NNBuilder &build, Value gradients);
  Value makeProduct(const NNBuilder &build, const Product &product, Value lhs,
                    Value rhs);
  LogicalResult findCalls();
  Value draw(const NNBuilder &build, const Product &product, Value like);

  func::FuncOp entry;
  const Fp8Recipe &recipe;
  MLIRContext *context;
  std::vector<Product> products;
  llvm::StringMap<int64_t> chunkOfSite;
  DelayedScales scales;
  BlockArgument calls;             ///< the number of those before this one
  llvm::StringMap<unsigned> draws; ///< of each layer's products
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

void EntryQuantizer::findSlots() {
  for (Product &product : products)
    for (unsigned operand : {0, 1}) {
      TensorRole role = product.roles[operand];
      if (!scales.keeps(role))
        continue;
      product.slots[operand] = scales.addSlot(
          findBase(product.op->getOperand(operand), role, /*hasParts=*/false),
          product.recipes[operand].format, product.getSite(), role,
          chunkOfSite.lookup(product.getSite()));
    }
}

/// Parts of a batch are parts of the first dimension.
LogicalResult EntryQuantizer::check(const Product &product) {
  if (recipe.blocks == 1)
    return success();
  nn::MatmulOp op = product.op;
  bool isParted = true;
  for (unsigned operand : {0, 1}) {
    TensorRole role = product.roles[operand];
    const OperandRecipe &own = product.recipes[operand];
    bool isWhole = own.granularity == Granularity::Tensor;
    // Rows and blocks of features are the same in all parts.
    if (role == TensorRole::Weight || !(own.isOfTensor() || product.isWgrad()))
      continue;
    auto hasParts = [&](Value value) {
      return cast<RankedTensorType>(value.getType()).getDimSize(0) %
                 recipe.blocks ==
             0;
    };
    Value value = op->getOperand(operand);
    isParted &=
        hasParts(value) && (!isWhole || hasParts(findBase(value, role, true)));
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
  ArrayRef<int64_t> shape = typeOf(value).getShape();
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
    Value scale;
    int64_t parts = role == TensorRole::Weight ? 1 : recipe.blocks;
    if (recipe.isMsAmp() && scales.keeps(role)) {
      scales.measure(build, product.slots[operand], base);
      scale = scales.getScaleInTime(build, product.slots[operand],
                                    product.chunk, base, parts);
    } else if (recipe.isDelayed()) {
      // A weight that two chunks share is measured once, by its owner.
      Value source = base;
      while (auto cut = role == TensorRole::Weight
                            ? source.getDefiningOp<nn::CutOp>()
                            : nn::CutOp())
        source = cut.getInput();
      scales.measure(build, product.slots[operand], source);
      scale = scales.getScale(build, product.slots[operand], product.chunk);
    } else {
      Value amax = buildAmax(build, base, parts);
      scale = buildScale(build, amax, getLargest(own.format), own.rule);
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
                         dim + typeOf(part).getRank() - typeOf(value).getRank(),
                         product.recipes[operand]);
  }
  return known;
}

/// A product times the inverses of an operand's scales, which are its rows' or
/// columns'.
static Value scaleRows(const NNBuilder &build, Value made, Quantized operand,
                       bool isLhs) {
  RankedTensorType type = typeOf(made);
  int64_t rank = type.getRank(), own = typeOf(operand.inverse).getRank();
  // A weight has no batch dimensions.
  SmallVector<int64_t> missing{isLhs ? rank - 1 : rank - 2};
  if (!isLhs && own == 1)
    missing = llvm::to_vector(llvm::seq(rank - 1));
  return build.mul(
      made, build.expand(build.cast(operand.inverse, type.getElementType()),
                         missing, type.getShape()));
}

/// Gradients that are rounded by chance ask for the number of the call.
LogicalResult EntryQuantizer::findCalls() {
  auto asking = llvm::find_if(products, [](const Product &product) {
    return product.recipes[0].isStochastic || product.recipes[1].isStochastic;
  });
  if (asking == products.end())
    return success();
  nn::ArgumentStates states(entry);
  for (BlockArgument argument : entry.getArguments())
    if (nn::StateOp state = states.find(argument);
        state && state.getRole() == nn::StateRole::counter)
      calls = argument; // the last one
  if (calls)
    return success();
  return asking->op.emitError()
         << "expected a step that counts its calls, to round the gradients of '"
         << asking->getSite()
         << "' stochastically, found no counter; --set "
            "fp8.stochastic_rounding=false rounds them to the nearest";
}

/// Numbers in [0, 1), one for each element. What is drawn for one product of
/// one layer says nothing of any other.
Value EntryQuantizer::draw(const NNBuilder &build, const Product &product,
                           Value like) {
  std::string name = ("nvfp4/" + product.getSite() + "/" +
                      nn::stringifyProductKind(product.tag.getKind()))
                         .str();
  // A weight that is used again draws other numbers.
  if (unsigned before = draws[name]++)
    name += "/" + std::to_string(before);
  auto seed =
      entry->getParentOfType<ModuleOp>()->getAttrOfType<IntegerAttr>(kSeedAttr);
  Value key = autodiff::buildRandomKey(build, calls, seed ? seed.getInt() : 0,
                                       autodiff::hashName(name));
  return autodiff::buildUniform(build, key, typeOf(like).getShape());
}

Value EntryQuantizer::makeProduct(const NNBuilder &build,
                                  const Product &product, Value lhs,
                                  Value rhs) {
  nn::MatmulOp op = product.op;
  Value made =
      build.matmul(lhs, rhs, op.getTransposeLhs(), op.getTransposeRhs());
  // Of constants it is one.
  if (auto matmul = made.getDefiningOp<nn::MatmulOp>()) {
    matmul->setAttr(nn::kProductAttr, product.tag);
    matmul->setAttr(nn::kReasonAttr,
                    StringAttr::get(context, recipe.describe()));
  }
  return made;
}

Value EntryQuantizer::multiplyNvfp4(const NNBuilder &build,
                                    const Product &product) {
  Nvfp4Operand operands[2];
  for (unsigned operand : {0, 1}) {
    const OperandRecipe &own = product.recipes[operand];
    Value value = nn::MatmulOp(product.op)->getOperand(operand);
    Value part = divide(build, product, value);
    int64_t added = typeOf(part).getRank() - typeOf(value).getRank();
    Value uniform;
    if (own.isStochastic)
      uniform = divide(build, product, draw(build, product, value));
    operands[operand] = roundToNvfp4(
        build, part, product.getSummed(operand) + added,
        product.roles[operand] == TensorRole::Weight ? 1 : recipe.blocks, own,
        uniform);
  }
  Value made =
      makeProduct(build, product, operands[0].values, operands[1].values);
  return scaleParts(build, made,
                    buildNvfp4Factor(build, operands[0], operands[1]));
}

/// Sums of codes are f32; in a program of f64 they are f64.
Value EntryQuantizer::multiply(const NNBuilder &build, const Product &product) {
  nn::MatmulOp op = product.op;
  Type result = op.getType().getElementType();
  Value made;
  if (product.recipes[0].rule == ScaleRule::TwoLevels) {
    made = multiplyNvfp4(build, product);
  } else if (product.recipes[0].isOfBlocks()) {
    Value rounded[2];
    for (unsigned operand : {0, 1}) {
      Value part = divide(build, product, op->getOperand(operand));
      int64_t added =
          typeOf(part).getRank() - typeOf(op->getOperand(operand)).getRank();
      rounded[operand] =
          roundBlocks(build, part, product.getSummed(operand) + added,
                      product.recipes[operand]);
    }
    made = makeProduct(build, product, rounded[0], rounded[1]);
  } else {
    Quantized operands[2];
    for (unsigned operand : {0, 1})
      operands[operand] = getQuantized(build, product, operand);
    auto codes = [&](unsigned operand) {
      Value value = operands[operand].codes;
      return result.isF64() ? build.cast(value, result) : value;
    };
    made = makeProduct(build, product, codes(0), codes(1));
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
  if (product.isWgrad() && recipe.isMsAmp())
    return sumGradients(build, made);
  if (product.isWgrad() && recipe.blocks > 1)
    made = build.sum(made, {0});
  return build.cast(made, result);
}

/// What ranks send: the gradient that a rank has of its micro-batches is
/// rounded to f8E4M3FN with the scale of the largest magnitude of all ranks',
/// so that the sum is one of codes. These are multiples of one number, and few:
/// it is exact, in whatever order.
Value EntryQuantizer::sumGradients(const NNBuilder &build, Value gradients) {
  ArrayRef<int64_t> shape = typeOf(gradients).getShape();
  if (recipe.blocks > 1) {
    // Of a micro-batch the ranks have parts next to each other.
    SmallVector<int64_t> divided{recipe.blocks / recipe.gradientParts,
                                 recipe.gradientParts};
    llvm::append_range(divided, shape.drop_front());
    gradients = build.sum(build.reshape(gradients, divided), {0});
  }
  auto complete = [&](Value sum) {
    Value whole = build.make<nn::CompleteOp>(sum);
    whole.getDefiningOp()->setAttr(nn::kReasonAttr,
                                   StringAttr::get(context, recipe.describe()));
    return whole;
  };
  gradients = complete(gradients); // not its terms are rounded
  auto format = Float8E4M3FNType::get(context);
  Value amax = buildAmax(build, gradients, /*parts=*/1);
  // One that is not finite fails the step: codes would hide it.
  Value isUsable = build.isFinite(amax);
  Value scale = build.select(
      isUsable, buildScale(build, amax, getLargest(format), ScaleRule::Power2),
      build.scale(amax, 0));
  Quantized rounded = quantize(build, gradients, scale, format);
  Value codes = build.cast(rounded.codes, typeOf(gradients).getElementType());
  if (recipe.blocks > 1) // codes are sent, not what a scale makes of them
    codes = complete(build.sum(codes, {0}));
  return scaleParts(build, codes, rounded.inverse);
}

/// Puts `wide` for what casts and views of `narrow`, the same in fewer bits,
/// make of it in the type of `wide`.
static void widenUses(OpBuilder &builder, Value narrow, Value wide) {
  for (Operation *user : llvm::make_early_inc_range(narrow.getUsers())) {
    if (isa<nn::CastOp>(user) &&
        user->getResult(0).getType() == wide.getType()) {
      user->getResult(0).replaceAllUsesWith(wide);
      user->erase();
    } else if (isShapeOnly(user)) {
      builder.setInsertionPoint(user);
      Operation *view = builder.clone(*user);
      view->setOperand(0, wide);
      view->getResult(0).setType(
          cast<RankedTensorType>(user->getResult(0).getType())
              .clone(getElementTypeOrSelf(wide)));
      widenUses(builder, user->getResult(0), view->getResult(0));
    }
  }
}

LogicalResult EntryQuantizer::run() {
  findProducts();
  if (products.empty())
    return success();
  for (const Product &product : products)
    if (failed(check(product)))
      return failure();
  if (failed(findCalls()))
    return failure();
  bool isStep = nn::getEntryKind(entry) == nn::EntryKind::step;
  if (recipe.isMsAmp() && isStep) {
    llvm::StringSet<> weights;
    for (const Product &product : products)
      weights.insert(product.getSite());
    roundWeights(entry, weights);
  }
  bool keepsScales = scales.keeps(TensorRole::Input);
  if (keepsScales) {
    findSlots();
    if (failed(scales.bind()))
      return failure();
  }
  for (const Product &product : products) {
    nn::MatmulOp op = product.op;
    OpBuilder builder(op);
    NNBuilder build{builder, op.getLoc()};
    Value made = multiply(build, product);
    if (made.getType() != op.getType()) {
      // A sum of codes has more bits than one of them.
      widenUses(builder, op.getResult(), made);
      builder.setInsertionPoint(op);
      made = build.cast(made, op.getType().getElementType());
    }
    op.replaceAllUsesWith(made);
    op.erase();
  }
  if (keepsScales && isStep)
    scales.write();
  return success();
}

namespace {
struct QuantizeProductsPass
    : impl::QuantizeProductsPassBase<QuantizeProductsPass> {
  using Base::Base;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    llvm::Expected<Fp8Recipe> parsed = parseFp8Recipe(
        {recipe, format, margin, historyLength, amax, interval, overrides,
         blocks, gradientParts, power2, hadamard, stochastic, tiles});
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
      if (failed(EntryQuantizer(entry, *parsed).run()))
        return signalPassFailure();
  }
};
} // namespace
} // namespace accel::precision
