// `--report=sharding`.

#include "Reports.h"
#include "Table.h"
#include "dialects/Dist/Dist.h"
#include "dialects/NN/NN.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/JSON.h"

using namespace mlir;
using namespace accel;

namespace {
/// How one state lies on a rank.
struct Placed {
  dist::LayoutAttr layout;
  RankedTensorType local;
  llvm::SetVector<StringRef> units; ///< that gather it
};

/// A parameter and what belongs to it.
struct TensorRow {
  nn::StateOp state;
  SmallVector<nn::StateOp> moments;
  nn::StateOp accumulator;
};
} // namespace

static void collectUnits(Value value, Placed &placed) {
  for (Operation *user : value.getUsers()) {
    if (auto unit = user->getAttrOfType<StringAttr>(dist::kUnitAttr))
      placed.units.insert(unit.getValue());
    if (isa<nn::CastOp>(user)) // rounded before it is gathered
      collectUnits(user->getResult(0), placed);
  }
}

/// The states as tasks take them.
static llvm::MapVector<StringAttr, Placed> findPlaces(ModuleOp module) {
  llvm::MapVector<StringAttr, Placed> places;
  for (auto task : module.getOps<func::FuncOp>())
    for (unsigned index = 0; index < task.getNumArguments(); ++index) {
      auto state =
          task.getArgAttrOfType<FlatSymbolRefAttr>(index, nn::kStateAttr);
      if (!state)
        continue;
      Placed &placed = places[state.getAttr()];
      placed.layout =
          task.getArgAttrOfType<dist::LayoutAttr>(index, dist::kLayoutAttr);
      placed.local = cast<RankedTensorType>(task.getArgumentTypes()[index]);
      if (!task.isExternal())
        collectUnits(task.getArgument(index), placed);
    }
  return places;
}

static std::string formatAxes(dist::LayoutAttr layout) {
  std::vector<std::string> dims;
  for (dist::AxesAttr axes : layout.getDims()) {
    std::vector<StringRef> names;
    for (StringAttr axis : axes.getNames())
      names.push_back(axis);
    dims.push_back("{" + llvm::join(names, ",") + "}");
  }
  return "[" + llvm::join(dims, ", ") + "]";
}

static std::string formatShape(ArrayRef<int64_t> shape) {
  std::vector<std::string> sizes;
  for (int64_t size : shape)
    sizes.push_back(std::to_string(size));
  return sizes.empty() ? "number" : llvm::join(sizes, "x");
}

/// "exp_avg/NAME" and "accumulator/NAME" belong to NAME.
static SmallVector<TensorRow> collectRows(ModuleOp module) {
  llvm::MapVector<StringRef, TensorRow> rows;
  for (auto state : module.getOps<nn::StateOp>())
    if (state.getRole() != nn::StateRole::moment &&
        state.getRole() != nn::StateRole::accumulator)
      rows[state.getSymName()].state = state;
  for (auto state : module.getOps<nn::StateOp>()) {
    auto found = rows.find(state.getSymName().split('/').second);
    if (found == rows.end())
      continue;
    if (state.getRole() == nn::StateRole::moment)
      found->second.moments.push_back(state);
    else if (state.getRole() == nn::StateRole::accumulator)
      found->second.accumulator = state;
  }
  return llvm::map_to_vector(rows, [](auto &entry) { return entry.second; });
}

static void printShardingJson(ArrayRef<TensorRow> rows,
                              const llvm::MapVector<StringAttr, Placed> &places,
                              llvm::raw_ostream &os) {
  llvm::json::OStream out(os, 1);
  auto integers = [&](StringRef name, ArrayRef<int64_t> values) {
    out.attributeArray(name, [&] {
      for (int64_t value : values)
        out.value(value);
    });
  };
  auto place = [&](nn::StateOp state) {
    Placed placed = places.lookup(state.getSymNameAttr());
    integers("shape", state.getLogicalType().getShape());
    if (!placed.layout)
      return;
    out.attribute("padded", state.getLogical().has_value());
    integers("local_shape", placed.local.getShape());
    out.attributeArray("axes", [&] {
      for (dist::AxesAttr axes : placed.layout.getDims())
        out.array([&] {
          for (StringAttr axis : axes.getNames())
            out.value(axis.getValue());
        });
    });
  };
  out.array([&] {
    for (TensorRow row : rows)
      out.object([&] {
        out.attribute("name", row.state.getSymName());
        out.attribute("role", nn::stringifyStateRole(row.state.getRole()));
        out.attribute("frozen", row.state.getFrozen());
        place(row.state);
        out.attributeArray("gather_units", [&] {
          for (StringRef unit : places.lookup(row.state.getSymNameAttr()).units)
            out.value(unit);
        });
        out.attributeArray("moments", [&] {
          for (nn::StateOp moment : row.moments)
            out.object([&] {
              out.attribute("name", moment.getSymName());
              place(moment);
            });
        });
        if (row.accumulator)
          integers(
              "accumulator_local_shape",
              places.lookup(row.accumulator.getSymNameAttr()).local.getShape());
      });
  });
  os << "\n";
}

LogicalResult report::printSharding(ModuleOp module, llvm::raw_ostream &os,
                                    bool json) {
  auto places = findPlaces(module);
  SmallVector<TensorRow> rows = collectRows(module);
  if (json) {
    printShardingJson(rows, places, os);
    return success();
  }
  Table table({"state", "shape", "split over", "of a rank", "moments of a rank",
               "accumulator", "gathered with"});
  for (TensorRow row : rows) {
    Placed placed = places.lookup(row.state.getSymNameAttr());
    if (!placed.layout)
      continue; // nothing reads it
    ArrayRef<int64_t> shape = row.state.getLogicalType().getShape();
    std::string padding;
    if (row.state.getLogical())
      padding = " (padded to " + formatShape(placed.layout.getShape()) + ")";
    std::string moments;
    for (nn::StateOp moment : row.moments)
      if (moment == row.moments.front())
        moments = formatShape(
            places.lookup(moment.getSymNameAttr()).local.getShape());
    table.add({row.state.getSymName().str(), formatShape(shape) + padding,
               formatAxes(placed.layout), formatShape(placed.local.getShape()),
               moments,
               row.accumulator
                   ? formatShape(places.lookup(row.accumulator.getSymNameAttr())
                                     .local.getShape())
                   : "",
               llvm::join(placed.units, ", ")});
  }
  table.print(os);
  return success();
}
