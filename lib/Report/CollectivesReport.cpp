// `--report=collectives`.

#include "Reports.h"
#include "Table.h"
#include "dialects/Dist/Dist.h"
#include "dialects/Plan/Plan.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/JSON.h"

using namespace mlir;
using namespace accel;
using namespace accel::plan;

namespace {
/// Collectives that are alike.
struct KindRow {
  std::string kind, axes, dtype, cause, task;
  int64_t ranks = 1, count = 0, tensors = 0, bytes = 0;
};

struct Totals {
  llvm::MapVector<StringAttr, KindRow> rows;
  /// Of each unit, the numbers of its gatherings in one micro-batch.
  llvm::MapVector<StringAttr, llvm::SmallSetVector<Attribute, 4>> units;
};
} // namespace

/// Adds a collective of a body that runs `times` in a call.
static void addCommand(CollectiveOp op, StringRef task, int64_t times,
                       Totals &totals) {
  MLIRContext *context = op.getContext();
  auto first = cast<ViewAttr>(op.getInputs()[0]);
  KindRow row;
  row.kind = stringifyCollective(op.getCollective()).str();
  SmallVector<StringRef> axes;
  for (auto axis : op.getAxes().getAsRange<StringAttr>()) {
    axes.push_back(axis);
    if (auto mesh = dist::MeshOp::of(op->getParentOfType<ModuleOp>()))
      row.ranks *= mesh.findAxisSize(axis).value_or(1);
  }
  row.axes = llvm::join(axes, ",");
  llvm::raw_string_ostream(row.dtype) << first.getElement();
  if (auto cause = op->getAttrOfType<StringAttr>(kInsertedByAttr))
    row.cause = cause.str();
  row.task = task.str();
  auto key =
      StringAttr::get(context, row.kind + "|" + row.axes + "|" + row.dtype +
                                   "|" + row.cause + "|" + row.task);
  KindRow &total = totals.rows.try_emplace(key, row).first->second;
  total.count += times;
  for (auto view : op.getInputs().getAsRange<ViewAttr>()) {
    total.tensors += times;
    total.bytes += times * view.getNumElements() * view.getElementBytes();
  }
  if (auto unit = op->getAttrOfType<StringAttr>(kUnitAttr);
      unit && op.getCollective() == Collective::all_gather)
    totals.units[unit].insert(op->getAttr(kInstanceAttr));
}

static Totals addUp(ProgramOp program, EntryOp entry) {
  Totals totals;
  entry.walk([&](RunOp run) {
    program.lookupSymbol<BodyOp>(run.getTask()).walk([&](CollectiveOp op) {
      addCommand(op, run.getTask(), run.getTrips(), totals);
    });
  });
  return totals;
}

static void printCollectivesJson(ArrayRef<std::pair<EntryOp, Totals>> entries,
                                 llvm::raw_ostream &os) {
  llvm::json::OStream out(os, 1);
  out.object([&] {
    out.attributeArray("collectives", [&] {
      for (const auto &[entry, totals] : entries)
        for (auto &[key, row] : totals.rows)
          out.object([&, entry = entry, &row = row] {
            out.attribute("entry", EntryOp(entry).getKind());
            out.attribute("kind", row.kind);
            out.attribute("axes", row.axes);
            out.attribute("ranks", row.ranks);
            out.attribute("dtype", row.dtype);
            out.attribute("task", row.task);
            out.attribute("count", row.count);
            out.attribute("tensors", row.tensors);
            out.attribute("bytes", row.bytes);
            out.attribute("cause", row.cause);
          });
    });
    out.attributeArray("gather_units", [&] {
      for (const auto &[entry, totals] : entries)
        for (auto &[unit, instances] : totals.units)
          out.object([&, entry = entry, unit = unit, &instances = instances] {
            out.attribute("entry", EntryOp(entry).getKind());
            out.attribute("unit", unit.getValue());
            out.attribute("gathers_per_micro_batch", int64_t(instances.size()));
          });
    });
  });
  os << "\n";
}

static void printCollectivesText(EntryOp entry, const Totals &totals,
                                 llvm::raw_ostream &os) {
  os << "collectives of one call of '" << entry.getKind() << "', per rank:\n";
  report::Table table({"kind", "axes", "ranks", "dtype", "task", "count",
                       "tensors", "bytes", "cause"});
  for (auto &[key, row] : totals.rows)
    table.add({row.kind, row.axes, std::to_string(row.ranks), row.dtype,
               row.task, std::to_string(row.count), std::to_string(row.tensors),
               formatBytes(row.bytes), row.cause});
  table.print(os);
  if (totals.units.empty())
    return;
  os << "gather units:\n";
  report::Table units({"unit", "gathers per micro-batch"});
  for (auto &[unit, instances] : totals.units)
    units.add({unit.str(), std::to_string(instances.size())});
  units.print(os);
}

LogicalResult report::printCollectives(ModuleOp module, llvm::raw_ostream &os,
                                       bool json) {
  for (auto program : module.getOps<ProgramOp>()) {
    SmallVector<std::pair<EntryOp, Totals>> entries;
    for (auto entry : program.getOps<EntryOp>())
      if (entry.getKind() != kLoadEntry)
        entries.emplace_back(entry, addUp(program, entry));
    if (json)
      printCollectivesJson(entries, os);
    else
      for (const auto &[entry, totals] : entries)
        printCollectivesText(entry, totals, os);
  }
  return success();
}
