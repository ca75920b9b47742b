// Delta debugging of programs: one change at a time, kept if it still fails.

#include "Shrink.h"

#include "dialects/NN/NN.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/Verifier.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace accel;
using namespace accel::fuzz;

static func::FuncOp getEntry(ModuleOp module) {
  return *module.getOps<func::FuncOp>().begin();
}

static StringRef getName(func::FuncOp entry, unsigned argument) {
  if (auto state =
          entry.getArgAttrOfType<FlatSymbolRefAttr>(argument, nn::kStateAttr))
    return state.getValue();
  return entry.getArgAttrOfType<StringAttr>(argument, nn::kInputAttr);
}

/// The names of inputs and states that nothing reads.
static llvm::StringSet<> getUnread(ModuleOp module) {
  llvm::StringSet<> names;
  func::FuncOp entry = getEntry(module);
  for (unsigned index = 0; index < entry.getNumArguments(); ++index)
    if (entry.getArgument(index).use_empty())
      names.insert(getName(entry, index));
  return names;
}

/// Removes ops, inputs and states that nothing reads, but those of `kept`.
static void removeDead(ModuleOp module, const llvm::StringSet<> &kept) {
  func::FuncOp entry = getEntry(module);
  for (Operation *op = entry.front().getTerminator()->getPrevNode(); op;) {
    Operation *before = op->getPrevNode();
    if (op->use_empty())
      op->erase();
    op = before;
  }
  SymbolTable symbols(module);
  for (unsigned index = entry.getNumArguments(); index-- > 0;) {
    if (!entry.getArgument(index).use_empty() ||
        kept.contains(getName(entry, index)))
      continue;
    if (auto name =
            entry.getArgAttrOfType<FlatSymbolRefAttr>(index, nn::kStateAttr))
      symbols.erase(symbols.lookup(name.getAttr()));
    LogicalResult erased = entry.eraseArgument(index);
    (void)erased;
  }
}

namespace {
class Shrinker {
public:
  Shrinker(Program &program, Layout &layout, unsigned attempts,
           StillFails stillFails)
      : program(program), layout(layout), attempts(attempts),
        stillFails(stillFails) {}

  void run() {
    // They may be what fails.
    for (StringRef name : llvm::to_vector(getUnread(*program.module).keys()))
      kept.insert(name);
    for (StringRef name : llvm::to_vector(kept.keys())) {
      llvm::StringSet<> all = kept;
      kept.erase(name);
      if (!attempts || !keep(program.clone()))
        kept = all;
    }
    for (bool changed = true; changed && attempts;) {
      changed = simplifyUpdate();
      changed |= simplifyLayout();
      changed |= dropOps();
      changed |= replaceByInputs();
    }
  }

private:
  bool tryLayout(const Layout &simpler) {
    if (!attempts)
      return false;
    --attempts;
    if (!stillFails(program, simpler))
      return false;
    layout = simpler;
    return true;
  }

  bool simplifyLayout() {
    bool changed = false;
    for (size_t at = layout.settings.size(); at-- > 0;) {
      Layout simpler = layout;
      simpler.settings.erase(simpler.settings.begin() + at);
      changed |= tryLayout(simpler);
    }
    for (size_t at = layout.axes.size(); at-- > 0;) {
      Layout simpler = layout;
      simpler.axes.erase(simpler.axes.begin() + at);
      changed |= tryLayout(simpler);
    }
    for (size_t at = 0; at < layout.axes.size(); ++at)
      for (int64_t size : {2, 3, 4})
        if (size < layout.axes[at].size) {
          Layout simpler = layout;
          simpler.axes[at].size = size;
          if (tryLayout(simpler)) {
            changed = true;
            break;
          }
        }
    for (int64_t parts : {1, 2, 3})
      if (parts < layout.microBatches) {
        Layout simpler = layout;
        simpler.microBatches = parts;
        if (tryLayout(simpler)) {
          changed = true;
          break;
        }
      }
    if (!layout.schedule.empty()) {
      Layout simpler = layout;
      simpler.schedule.clear();
      changed |= tryLayout(simpler);
    }
    return changed;
  }

  bool simplifyUpdate() {
    if (!attempts)
      return false;
    Program simpler = program.clone();
    simpler.update = Update();
    simpler.update.batchDims = program.update.batchDims;
    if (program.update.getFlags() == simpler.update.getFlags())
      return false;
    return keep(std::move(simpler));
  }

  /// Takes a changed program for the program if it still fails.
  bool keep(Program changed) {
    removeDead(*changed.module, kept);
    if (failed(mlir::verify(*changed.module)))
      return false;
    --attempts;
    if (!stillFails(changed, layout))
      return false;
    program = std::move(changed);
    return true;
  }

  static Operation *getOp(ModuleOp module, unsigned number) {
    for (Operation &op : getEntry(module).front().without_terminator())
      if (number-- == 0)
        return &op;
    return nullptr;
  }
  unsigned countOps() {
    return llvm::range_size(
        getEntry(*program.module).front().without_terminator());
  }

  /// Values that may stand in the place of an op's result: operands first, then
  /// what stands before it, arguments last.
  static SmallVector<Value> getSubstitutes(Operation *op) {
    Type type = op->getResult(0).getType();
    SmallVector<Value> values;
    auto add = [&](Value value) {
      if (value.getType() == type && !llvm::is_contained(values, value))
        values.push_back(value);
    };
    for (Value operand : op->getOperands())
      add(operand);
    for (Operation *before = op->getPrevNode(); before && values.size() < 3;
         before = before->getPrevNode())
      if (before->getNumResults())
        add(before->getResult(0));
    for (Value argument : op->getBlock()->getArguments())
      if (values.size() < 4)
        add(argument);
    return values;
  }

  /// From the loss up, so that much goes at once.
  bool dropOps() {
    bool changed = false;
    for (unsigned number = countOps(); number-- > 0 && attempts;) {
      Operation *op = getOp(*program.module, number);
      if (!op)
        continue;
      unsigned count = getSubstitutes(op).size();
      for (unsigned choice = 0; choice < count && attempts; ++choice) {
        Program copy = program.clone();
        Operation *there = getOp(*copy.module, number);
        there->getResult(0).replaceAllUsesWith(getSubstitutes(there)[choice]);
        if (keep(std::move(copy))) {
          changed = true;
          break;
        }
      }
    }
    return changed;
  }

  /// A value becomes an input: what made it goes.
  bool replaceByInputs() {
    bool changed = false;
    for (unsigned number = countOps(); number-- > 0 && attempts;) {
      Operation *op = getOp(*program.module, number);
      auto type = op ? dyn_cast<RankedTensorType>(op->getResult(0).getType())
                     : RankedTensorType();
      if (!type || type.getRank() == 0 || op->getNumOperands() == 0 ||
          type.getDimSize(0) == 1)
        continue;
      for (bool isState : {false, true}) {
        if (!attempts || (isState && !type.getElementType().isF64()))
          continue;
        Program copy = program.clone();
        Operation *there = getOp(*copy.module, number);
        replaceByArgument(*copy.module, there->getResult(0), isState);
        if (keep(std::move(copy))) {
          changed = true;
          break;
        }
      }
    }
    return changed;
  }

  void replaceByArgument(ModuleOp module, Value value, bool isState) {
    func::FuncOp entry = getEntry(module);
    OpBuilder b(entry);
    auto type = cast<RankedTensorType>(value.getType());
    StringAttr name = b.getStringAttr("s" + Twine(numNames++));
    NamedAttribute binding = b.getNamedAttr(nn::kInputAttr, name);
    unsigned place = 0;
    if (isState) {
      SmallVector<double> numbers;
      for (int64_t at = 0; at < type.getNumElements(); ++at)
        numbers.push_back(double((at * 7 + 3) % 11) / 8 - 0.5);
      nn::StateOp::create(b, b.getUnknownLoc(), name, type,
                          DenseElementsAttr::get(type, ArrayRef(numbers)),
                          nullptr, nullptr, nullptr, nullptr, /*frozen=*/false,
                          nn::StateRole::parameter);
      binding = b.getNamedAttr(nn::kStateAttr, FlatSymbolRefAttr::get(name));
      place = entry.getNumArguments();
    }
    LogicalResult inserted = entry.insertArgument(
        place, type, b.getDictionaryAttr(binding), NameLoc::get(name));
    (void)inserted;
    value.replaceAllUsesWith(entry.getArgument(place));
  }

  Program &program;
  Layout &layout;
  unsigned attempts, numNames = 0;
  llvm::StringSet<> kept; ///< though nothing reads them
  StillFails stillFails;
};
} // namespace

void fuzz::shrink(Program &program, Layout &layout, unsigned attempts,
                  StillFails stillFails) {
  Shrinker(program, layout, attempts, stillFails).run();
}
