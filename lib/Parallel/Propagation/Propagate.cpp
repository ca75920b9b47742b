// Propagation of shardings to a fixpoint, and the pass that shows it.

#include "FactorAxes.h"
#include "Propagation.h"
#include "dialects/Interfaces/ShardingRule.h"
#include "lib/Parallel/Passes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;

namespace accel::parallel {
#define GEN_PASS_DEF_PROPAGATEPASS
#include "lib/Parallel/Passes.h.inc"

Propagation::Propagation(Operation *op) {
  auto function = cast<FunctionOpInterface>(op);
  if (function.isExternal())
    return;
  // A module has one mesh so far; it is found by name where a constraint or a
  // type speaks of it, and by its place otherwise.
  if (auto module = op->getParentOfType<ModuleOp>())
    mesh = dist::MeshOp::of(module);
  if (!mesh)
    return;
  // What comes first is not undone: closed constraints before wishes, and what
  // an op keeps apart before what it adds up, where to split the one operand
  // says little of the other.
  auto add = [&](Value value) {
    if (auto tensor = dyn_cast<RankedTensorType>(value.getType()))
      table[value].dims.resize(tensor.getRank());
  };
  llvm::for_each(function.getArguments(), add);
  function.walk([&](Operation *op) { llvm::for_each(op->getResults(), add); });
  for (bool wishes : {false, true}) {
    ofWishes = wishes;
    seed(function, wishes);
    for (bool sums : {false, true}) {
      throughSums = sums;
      settle(function);
    }
  }
}

/// Whether a constraint gives way to others: it fixes no dimension.
static bool isWish(dist::ConstraintOp constraint) {
  ArrayRef<dist::AxesAttr> dims = constraint.getSharding().getDims();
  return !dims.empty() &&
         llvm::all_of(dims, [](dist::AxesAttr axes) { return axes.getOpen(); });
}

void Propagation::seed(FunctionOpInterface function, bool wishes) {
  function.walk([&](dist::ConstraintOp constraint) {
    if (isWish(constraint) != wishes)
      return;
    Entry &entry = table[constraint.getResult()];
    entry.fixed = !wishes;
    for (auto [dim, axes] :
         llvm::enumerate(constraint.getSharding().getDims())) {
      extend(constraint.getResult(), dim, axes.getNames(), constraint);
      entry.dims[dim].closed = !axes.getOpen();
    }
  });
}

void Propagation::settle(FunctionOpInterface function) {
  // Constraints first: the worklist is taken from its end.
  for (Block &block : llvm::reverse(function.getFunctionBody()))
    for (Operation &op : llvm::reverse(block))
      push(&op);
  function.walk([&](dist::ConstraintOp constraint) { push(constraint); });
  while (!worklist.empty()) {
    Operation *next = worklist.pop_back_val();
    queued.erase(next);
    visit(next);
  }
}

void Propagation::push(Operation *op) {
  if (queued.insert(op).second)
    worklist.push_back(op);
}

void Propagation::extend(Value value, size_t index, ArrayRef<StringAttr> axes,
                         Operation *origin) {
  Entry &entry = table[value];
  Dim &dim = entry.dims[index];
  if (dim.closed || axes.size() <= dim.axes.size() ||
      axes.take_front(dim.axes.size()) != ArrayRef<StringAttr>(dim.axes))
    return;
  bool grown = false;
  for (StringAttr axis : axes.drop_front(dim.axes.size())) {
    bool used = llvm::any_of(entry.dims, [&](const Dim &other) {
      return llvm::is_contained(other.axes, axis);
    });
    if (used)
      break;
    dim.axes.push_back(axis);
    dim.origins.push_back(origin);
    dim.firm += !ofWishes;
    grown = true;
  }
  if (!grown)
    return;
  if (Operation *definition = value.getDefiningOp())
    push(definition);
  for (Operation *user : value.getUsers())
    push(user);
}

void Propagation::visit(Operation *op) {
  if (auto constraint = dyn_cast<dist::ConstraintOp>(op)) {
    if (constraint.getAlone())
      return;
    for (size_t dim = 0, rank = constraint.getType().getRank(); dim < rank;
         ++dim) {
      // Copies: extending a value may move the table.
      Dim in = table[constraint.getInput()].dims[dim];
      Dim out = table[constraint.getResult()].dims[dim];
      extend(constraint.getResult(), dim, in.axes, op);
      extend(constraint.getInput(), dim, out.axes, op);
    }
    return;
  }
  auto shardable = dyn_cast<ShardingRuleOpInterface>(op);
  if (!shardable)
    return;
  ShardingRule rule = shardable.getShardingRule();
  SmallVector<Value> values(op->getOperands());
  llvm::append_range(values, op->getResults());
  SmallVector<TensorAxes> tensors;
  for (Value value : values) {
    TensorAxes &axes = tensors.emplace_back();
    const Entry &entry = table[value];
    axes.fixed = entry.fixed;
    axes.wishes = getWishes(value);
    bool speaks = tensors.size() > rule.operands.size() || !isSilent(op, value);
    for (const Dim &dim : entry.dims)
      axes.dims.push_back(speaks ? dim.axes : AxisList());
  }
  AxisLists factorAxes = chooseFactorAxes(mesh, op, rule, tensors);
  for (auto [factor, axes] : llvm::zip(rule.factors, factorAxes))
    if (factor.kind != FactorKind::PassThrough && !throughSums)
      axes.clear();
  for (auto [index, value] : llvm::enumerate(values)) {
    if (index < rule.operands.size() && !rule.spreadsToOperands)
      continue;
    const ShardingRule::Tensor &dims =
        index < rule.operands.size()
            ? rule.operands[index]
            : rule.results[index - rule.operands.size()];
    for (auto [dim, factors] : llvm::enumerate(dims))
      extend(value, dim, joinFactors(factors, factorAxes), op);
  }
}

const Propagation::Entry &Propagation::lookup(Value value) const {
  static const Entry kNothing;
  auto found = table.find(value);
  return found == table.end() ? kNothing : found->second;
}

AxisList Propagation::getWishes(Value value) const {
  AxisList wishes;
  for (const Dim &dim : lookup(value).dims)
    llvm::append_range(wishes, ArrayRef(dim.axes).drop_front(dim.firm));
  return wishes;
}

namespace {
struct PropagatePass : impl::PropagatePassBase<PropagatePass> {
  using Base::Base;

  void runInOrder() override {
    markAllAnalysesPreserved();
    for (auto function : getOperation().getOps<func::FuncOp>()) {
      auto &propagation = getChildAnalysis<Propagation>(function);
      if (printOrigins)
        print(function, propagation);
    }
  }

  static void print(func::FuncOp function, const Propagation &propagation) {
    for (BlockArgument argument : function.getArguments())
      remark(function.emitRemark()
                 << "argument " << argument.getArgNumber() << ": ",
             propagation.lookup(argument));
    function.walk([&](Operation *op) {
      for (Value result : op->getResults())
        remark(op->emitRemark(), propagation.lookup(result));
    });
  }

  /// [{dp}, {}]; "dp" through nn.add, …
  static void remark(InFlightDiagnostic diagnostic,
                     const Propagation::Entry &entry) {
    diagnostic << "[";
    llvm::interleaveComma(
        entry.dims, diagnostic, [&](const Propagation::Dim &dim) {
          diagnostic << "{";
          llvm::interleaveComma(dim.axes, diagnostic, [&](StringAttr axis) {
            diagnostic << axis.getValue();
          });
          diagnostic << "}";
        });
    diagnostic << "]";
    for (const Propagation::Dim &dim : entry.dims)
      for (auto [axis, origin] : llvm::zip(dim.axes, dim.origins))
        diagnostic << "; '" << axis.getValue() << "' through "
                   << origin->getName().getStringRef();
  }
};
} // namespace
} // namespace accel::parallel
