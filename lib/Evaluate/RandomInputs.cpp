// Random inputs that a program can digest, from a fixed generator.

#include "lib/Evaluate/Entry.h"

#include "dialects/NN/NN.h"
#include "dialects/Plan/Plan.h"
#include "llvm/Support/xxhash.h"

#include <cmath>

using namespace mlir;
using namespace accel;
using namespace accel::evaluate;

namespace {
/// splitmix64 (Steele, Lea and Flood, 2014).
struct Generator {
  uint64_t state;

  uint64_t next() {
    uint64_t z = state += 0x9E3779B97F4A7C15;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
    return z ^ (z >> 31);
  }
  /// In (0, 1).
  double uniform() { return ((next() >> 12) + 0.5) * 0x1p-52; }
  /// Box and Muller; eight significant bits, so that every float type holds it.
  double normal(Type bf16) {
    double value =
        std::sqrt(-2 * std::log(uniform())) * std::cos(2 * M_PI * uniform());
    return roundToType(std::nearbyint(value * 256) / 256, bf16);
  }
};
} // namespace

/// The smallest size that `value` indexes, followed through ops that only move
/// integers and through calls; INT64_MAX where it indexes nothing.
static int64_t getIndexBound(Value value) {
  int64_t bound = INT64_MAX;
  SmallVector<Value> pending = {value};
  DenseSet<Value> seen;
  while (!pending.empty()) {
    Value next = pending.pop_back_val();
    if (!seen.insert(next).second)
      continue;
    for (OpOperand &use : next.getUses()) {
      Operation *op = use.getOwner();
      if (auto gather = dyn_cast<nn::GatherOp>(op);
          gather && use.getOperandNumber() == 1)
        bound = std::min(
            bound, gather.getTable().getType().getDimSize(gather.getDim()));
      else if (auto scatter = dyn_cast<nn::ScatterAddOp>(op);
               scatter && use.getOperandNumber() == 1)
        bound = std::min(
            bound, scatter.getInit().getType().getDimSize(scatter.getDim()));
      else if (auto loss = dyn_cast<nn::CrossEntropyOp>(op))
        bound = std::min(bound, loss.getLogits().getType().getShape().back());
      else if (auto called = dyn_cast<func::CallOp>(op)) {
        if (auto callee = SymbolTable::lookupNearestSymbolFrom<func::FuncOp>(
                op, called.getCalleeAttr()))
          pending.push_back(callee.getArgument(use.getOperandNumber()));
      } else if (isa<nn::ReshapeOp, nn::TransposeOp, nn::BroadcastOp,
                     nn::SliceOp, nn::ConcatOp, nn::PadOp, nn::CastOp,
                     nn::SelectOp, dist::ReshardOp, dist::ConstraintOp,
                     dist::CollectiveOpInterface>(op))
        pending.push_back(op->getResult(0));
    }
  }
  return std::max<int64_t>(bound, 1);
}

/// The values that hold an input: arguments of the entry or its tasks, or of
/// the kernels
/// that read the buffer which the input is read into.
static SmallVector<Value> findInputValues(ModuleOp module, StringRef name,
                                          EntryKind entry) {
  SmallVector<Value> values;
  if (!isPlan(module)) {
    for (auto function : module.getOps<func::FuncOp>()) {
      if (function.isExternal() || (!function->hasAttr(dist::kTaskAttr) &&
                                    function != *findEntry(module, entry)))
        continue;
      FailureOr<Bindings> bindings = getBindings(function);
      for (auto [index, binding] : llvm::enumerate(bindings->arguments))
        if (!binding.isState && binding.name == name)
          values.push_back(function.getArgument(index));
    }
    return values;
  }
  DenseSet<Attribute> buffers;
  module.walk([&](plan::ReadOp read) {
    if (read.getSource() == plan::Source::input && read.getName() == name)
      buffers.insert(read.getTarget().getBuffer());
  });
  // Where a target has files read elsewhere, what is copied from there.
  module.walk([&](plan::CopyOp copy) {
    if (buffers.contains(copy.getSource().getBuffer()))
      buffers.insert(copy.getTarget().getBuffer());
  });
  module.walk([&](plan::KernelOp kernel) {
    auto function = module.lookupSymbol<func::FuncOp>(kernel.getFunction());
    for (auto [index, view] :
         llvm::enumerate(kernel.getInputs().getAsRange<plan::ViewAttr>()))
      if (function && buffers.contains(view.getBuffer()))
        values.push_back(function.getArgument(index));
  });
  return values;
}

FailureOr<TensorsByName>
evaluate::makeRandomInputs(ModuleOp module, uint64_t seed, EntryKind entry) {
  FailureOr<Signature> signature = getSignature(module, entry);
  if (failed(signature))
    return failure();
  TensorsByName inputs;
  Type bf16 = BFloat16Type::get(module.getContext());
  for (const NamedType &input : signature->inputs) {
    Tensor tensor(input.type);
    Generator generator{seed ^ llvm::xxh3_64bits(input.name)};
    if (tensor.isFloat()) {
      for (double &value : tensor.mutableFloats())
        value = roundToType(generator.normal(bf16), tensor.getElementType());
    } else {
      int64_t bound = INT64_MAX;
      for (Value value : findInputValues(module, input.name, entry))
        bound = std::min(bound, getIndexBound(value));
      bound = bound == INT64_MAX ? 2 : bound;
      for (int64_t &value : tensor.mutableInts())
        value = wrapToType(generator.next() % bound, tensor.getElementType());
    }
    inputs[input.name] = tensor;
  }
  return inputs;
}
