// `--explain=sharding`.

#include "NodeNames.h"
#include "Reports.h"
#include "Table.h"
#include "dialects/Dist/Dist.h"
#include "dialects/NN/Entry.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/JSON.h"

using namespace mlir;
using namespace accel;

namespace {
/// A tensor that a user knows.
struct DimensionRow {
  std::string entry, kind, name;
  RankedTensorType type;
};
} // namespace

/// States once, inputs and outputs of each entry. Members are where their stack
/// is.
static std::vector<DimensionRow> collectDimensions(ModuleOp module) {
  std::vector<DimensionRow> rows;
  llvm::DenseSet<Attribute> members;
  for (auto state : module.getOps<nn::StateOp>())
    members.insert_range(state.getMembers());
  for (auto state : module.getOps<nn::StateOp>())
    if (!members.contains(FlatSymbolRefAttr::get(state.getSymNameAttr())))
      rows.push_back({"", "state", state.getSymName().str(),
                      cast<RankedTensorType>(state.getType())});
  for (func::FuncOp entry : nn::getEntries(module)) {
    for (unsigned index = 0; index < entry.getNumArguments(); ++index)
      if (auto name = entry.getArgAttrOfType<StringAttr>(index, nn::kInputAttr))
        rows.push_back(
            {entry.getSymName().str(), "input", name.str(),
             cast<RankedTensorType>(entry.getArgumentTypes()[index])});
    for (unsigned index = 0; index < entry.getNumResults(); ++index)
      if (auto name =
              entry.getResultAttrOfType<StringAttr>(index, nn::kOutputAttr))
        rows.push_back({entry.getSymName().str(), "output", name.str(),
                        cast<RankedTensorType>(entry.getResultTypes()[index])});
  }
  return rows;
}

static std::string findOrigin(ArrayAttr origins, const DimensionRow &row,
                              int64_t dim, StringAttr axis) {
  for (auto known : origins.getAsRange<DictionaryAttr>())
    if (known.getAs<StringAttr>("name") == row.name &&
        known.getAs<StringAttr>("kind") == row.kind &&
        known.getAs<StringAttr>("entry") == row.entry &&
        known.getAs<StringAttr>("axis") == axis &&
        known.getAs<IntegerAttr>("dim").getInt() == dim)
      return known.getAs<StringAttr>("by").str();
  // What comes later than propagation: accumulators are as their terms are.
  return "the values that it is made of";
}

static StringRef nameArgument(func::FuncOp entry, unsigned index) {
  if (auto state =
          entry.getArgAttrOfType<FlatSymbolRefAttr>(index, nn::kStateAttr))
    return state.getValue();
  auto input = entry.getArgAttrOfType<StringAttr>(index, nn::kInputAttr);
  return input ? input.getValue() : "";
}

/// What an entry computes, in its order, as a picture of it needs: each value's
/// op, node, shape, axes, the axes that its terms are to be summed over, and
/// what it is made of, values by their numbers and arguments by their names.
static void printValues(func::FuncOp entry, llvm::json::OStream &out) {
  DenseMap<Value, int64_t> numbers;
  entry.walk([&](Operation *op) {
    for (Value value : op->getResults())
      if (auto type = dyn_cast<RankedTensorType>(value.getType())) {
        auto sharding = dist::ShardingAttr::of(type);
        int64_t number = numbers.size();
        numbers[value] = number;
        out.object([&] {
          out.attribute("entry", entry.getSymName());
          out.attribute("kind", "value");
          out.attribute("number", number);
          out.attribute("op", op->getName().getStringRef());
          out.attribute("name", report::describeNode(op));
          out.attributeArray("shape", [&] {
            for (int64_t size : type.getShape())
              out.value(size);
          });
          out.attributeArray("axes", [&] {
            if (!sharding)
              return;
            for (auto [dim, axes] : llvm::enumerate(sharding.getDims()))
              for (StringAttr axis : axes.getNames())
                out.object([&, dim = dim] {
                  out.attribute("dim", dim);
                  out.attribute("axis", axis.getValue());
                });
          });
          out.attributeArray("sums", [&] {
            if (!sharding)
              return;
            for (StringAttr axis : sharding.getPartial().getNames())
              out.value(axis.getValue());
          });
          out.attributeArray("of", [&] {
            for (Value operand : op->getOperands())
              if (auto known = numbers.find(operand); known != numbers.end())
                out.value(known->second);
              else if (auto argument = dyn_cast<BlockArgument>(operand);
                       argument && argument.getOwner()->getParentOp() == entry)
                out.value(nameArgument(entry, argument.getArgNumber()));
          });
        });
      }
  });
}

LogicalResult report::explainSharding(ModuleOp module, llvm::raw_ostream &os,
                                      bool json) {
  auto origins = module->getAttrOfType<ArrayAttr>(dist::kOriginsAttr);
  if (!origins)
    return module.emitError() << "expected a module with '"
                              << dist::kOriginsAttr << "', found none";
  std::vector<DimensionRow> rows = collectDimensions(module);
  auto forEachAxis = [&](const DimensionRow &row, auto act) {
    for (auto [dim, axes] :
         llvm::enumerate(dist::ShardingAttr::of(row.type).getDims()))
      for (StringAttr axis : axes.getNames())
        act(dim, axis, findOrigin(origins, row, dim, axis));
  };
  if (json) {
    llvm::json::OStream out(os, 1);
    out.array([&] {
      for (const DimensionRow &row : rows)
        out.object([&] {
          if (!row.entry.empty())
            out.attribute("entry", row.entry);
          out.attribute("kind", row.kind);
          out.attribute("name", row.name);
          out.attributeArray("shape", [&] {
            for (int64_t size : row.type.getShape())
              out.value(size);
          });
          out.attributeArray("axes", [&] {
            forEachAxis(
                row, [&](int64_t dim, StringAttr axis, const std::string &by) {
                  out.object([&] {
                    out.attribute("dim", dim);
                    out.attribute("axis", axis.getValue());
                    out.attribute("by", by);
                  });
                });
          });
        });
      for (func::FuncOp entry : nn::getEntries(module))
        printValues(entry, out);
    });
    os << "\n";
    return success();
  }
  Table table({"entry", "kind", "name", "dim", "size", "axis", "by"});
  for (const DimensionRow &row : rows) {
    bool split = false;
    forEachAxis(row, [&](int64_t dim, StringAttr axis, const std::string &by) {
      table.add({row.entry, row.kind, row.name, std::to_string(dim),
                 std::to_string(row.type.getDimSize(dim)), axis.str(), by});
      split = true;
    });
    if (!split)
      table.add(
          {row.entry, row.kind, row.name, "", "", "", "whole on every rank"});
  }
  table.print(os);
  return success();
}
