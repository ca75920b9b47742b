// `--report=precision`: in which types a program multiplies, and why.

#include "NodeNames.h"
#include "Reports.h"
#include "Table.h"
#include "dialects/Interfaces/Castable.h"
#include "dialects/NN/Calls.h"
#include "dialects/NN/Entry.h"
#include "dialects/NN/NN.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace accel;
using namespace accel::report;
using llvm::json::Object;

static std::string nameOf(Type type) {
  std::string text;
  llvm::raw_string_ostream(text) << type;
  return text;
}

static Type elementOf(Value value) {
  return getElementTypeOrSelf(value.getType());
}

namespace {
/// One product, or attention: what is printed of it.
struct PrecisionRow {
  std::string node, op, part, operands, sums, result, why;
};
} // namespace

/// What moves elements, or rounds them.
static bool isOnTheWay(Operation *op) {
  return isa<nn::CastOp, nn::ReshapeOp, nn::TransposeOp, nn::SliceOp,
             nn::BroadcastOp, nn::CutOp>(op);
}

/// Whether the value, as it is or added to others, is a gradient of a state.
static bool isOfState(Value value) {
  return llvm::any_of(value.getUsers(), [](Operation *user) {
    return isa<nn::GradientOp>(user) ||
           ((isOnTheWay(user) || isa<nn::AddOp>(user)) &&
            isOfState(user->getResult(0)));
  });
}

/// Whether a location says that its op is made for a gradient.
static bool isOfBackward(Location loc) {
  bool found = false;
  loc->walk([&](Location inner) {
    auto name = dyn_cast<NameLoc>(inner);
    found |= name && name.getName() == "gradient";
    return found ? WalkResult::interrupt() : WalkResult::advance();
  });
  return found;
}

static StringRef getPart(Operation *op) {
  if (auto product = op->getAttrOfType<nn::ProductAttr>(nn::kProductAttr))
    switch (product.getKind()) {
    case nn::ProductKind::fprop:
      return "forward";
    case nn::ProductKind::dgrad:
      return "input gradient";
    case nn::ProductKind::wgrad:
      return "weight gradient";
    }
  if (isa<nn::GroupedMatmulGradOp>(op) || isOfState(op->getResult(0)))
    return "weight gradient";
  return isOfBackward(op->getLoc()) ? "input gradient" : "forward";
}

/// The list of torch.autocast that a program's types are of; empty: none.
static StringRef getList(Operation *op) {
  auto module = op->getParentOfType<ModuleOp>();
  auto list = module ? module->getAttrOfType<StringAttr>(nn::kAutocastAttr)
                     : StringAttr();
  return list ? list.getValue() : StringRef();
}

/// What the casts of its operands say, or what stands for saying nothing.
static std::string getReason(Operation *op) {
  if (auto reason = op->getAttrOfType<StringAttr>(nn::kReasonAttr))
    return reason.str();
  for (Value operand : op->getOperands())
    while (Operation *maker = operand.getDefiningOp()) {
      if (auto reason = maker->getAttrOfType<StringAttr>(nn::kReasonAttr))
        return reason.str();
      if (!isOnTheWay(maker))
        break;
      operand = maker->getOperand(0);
    }
  if (StringRef list = getList(op); !list.empty())
    return ("by the " + list + " list").str();
  return "the model's types";
}

static PrecisionRow describeCast(Operation *op) {
  SmallVector<std::string> operands;
  for (Value operand : op->getOperands())
    if (isa<FloatType>(elementOf(operand)) && operands.size() < 2)
      operands.push_back(nameOf(elementOf(operand)));
  Type type = elementOf(op->getOperand(0));
  std::string node = describeNode(op);
  if (StringRef name = node; // of gradients the part is said
      name.consume_back("gradient") &&
      (name.empty() || name.consume_back(", ")))
    node = name.str();
  return {node,
          op->getName().stripDialect().str(),
          getPart(op).str(),
          llvm::join(operands, " x "),
          type.isF64() ? "f64" : "f32",
          nameOf(elementOf(op->getResult(0))),
          getReason(op)};
}

/// What lists cast beside the operands of products: everything may be.
static void printCasts(func::FuncOp entry, llvm::raw_ostream &os,
                       llvm::json::Array *all) {
  Table table({"node", "from", "to", "why"});
  entry.walk([&](nn::CastOp cast) {
    auto reason = cast->getAttrOfType<StringAttr>(nn::kReasonAttr);
    if (!reason)
      return;
    std::string node = describeNode(cast),
                from = nameOf(elementOf(cast.getInput())),
                to = nameOf(elementOf(cast));
    if (all)
      all->push_back(Object{
          {"node", node}, {"from", from}, {"to", to}, {"why", reason.str()}});
    else
      table.add({node, from, to, reason.str()});
  });
  if (all)
    return;
  os << "casts by the " << getList(entry) << " list of torch.autocast:\n";
  table.print(os);
}

/// The scale that a loss begins with; none where it is not scaled.
static std::optional<double> findScale(ModuleOp module) {
  for (auto state : module.getOps<nn::StateOp>())
    if (state.getRole() == nn::StateRole::scaler &&
        getElementTypeOrSelf(state.getType()).isF32())
      if (auto init = dyn_cast<SplatElementsAttr>(state.getInit()))
        return init.getSplatValue<APFloat>().convertToDouble();
  return std::nullopt;
}

LogicalResult report::printPrecision(ModuleOp module, llvm::raw_ostream &os,
                                     bool json) {
  func::FuncOp entry = nn::findEntry(module, nn::EntryKind::step);
  if (!entry)
    entry = nn::findEntry(module, nn::EntryKind::forward);
  if (!entry)
    return module.emitError() << "expected a step or a forward entry for "
                                 "--report=precision, found none";
  llvm::json::Array products;
  Table table({"node", "op", "part", "operands", "sums", "result", "why"});
  entry.walk([&](Operation *op) {
    if (!isa<CastableOpInterface, nn::GroupedMatmulGradOp, nn::AttentionGradOp>(
            op))
      return;
    PrecisionRow row = describeCast(op);
    products.push_back(Object{{"node", row.node},
                              {"op", row.op},
                              {"part", row.part},
                              {"operands", row.operands},
                              {"sums", row.sums},
                              {"result", row.result},
                              {"why", row.why}});
    table.add({row.node, row.op, row.part, row.operands, row.sums, row.result,
               row.why});
  });
  std::optional<double> scale = findScale(module);
  if (json) {
    Object all{{"entry", entry.getSymName()},
               {"products", std::move(products)}};
    if (scale)
      all["loss_scale"] = *scale;
    if (StringRef list = getList(entry); !list.empty()) {
      llvm::json::Array casts;
      printCasts(entry, os, &casts);
      all["autocast"] = list;
      all["casts"] = std::move(casts);
    }
    os << llvm::formatv("{0:2}", llvm::json::Value(std::move(all))) << "\n";
    return success();
  }
  os << "products of '" << entry.getSymName() << "':\n";
  table.print(os);
  if (!getList(entry).empty())
    printCasts(entry, os, nullptr);
  if (scale)
    os << "loss scale: from " << llvm::format("%g", *scale)
       << ", a state of the step\n";
  return success();
}
