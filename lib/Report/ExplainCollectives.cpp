// `--explain=collectives`.

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
/// One collective of a task.
struct CollectiveRow {
  std::string task, taskKind, kind, axes, dtype, node, pass;
  int64_t ranks = 1, bytes = 0, count = 1;
  std::vector<std::string> reasons; ///< one for each axis
};
} // namespace

static CollectiveRow describe(dist::CollectiveOpInterface op, func::FuncOp task,
                              int64_t count) {
  CollectiveRow row;
  row.task = task.getSymName().str();
  // A task may have another name: those of chunks and other entries are taken.
  if (auto what = task->getAttrOfType<dist::TaskAttr>(dist::kTaskAttr))
    row.taskKind = dist::stringifyTaskKind(what.getKind()).str();
  row.count = count;
  row.kind = op->getName().stripDialect().str();
  auto type = cast<RankedTensorType>(op->getOperand(0).getType());
  // What is sent, which may be narrower than what is computed with.
  Type element = op.getWireType().value_or(type.getElementType());
  row.bytes = type.getNumElements() *
              llvm::divideCeil(element.getIntOrFloatBitWidth(), 8);
  llvm::raw_string_ostream(row.dtype) << element;
  row.node = report::describeNode(op);
  // What is returned is for no node, and comes from one.
  if (Operation *made = op->getOperand(0).getDefiningOp();
      made && row.node.empty())
    row.node = report::describeNode(made);
  if (auto pass = op->getAttrOfType<StringAttr>(dist::kInsertedByAttr))
    row.pass = pass.str();
  auto mesh = dist::MeshOp::of(op->getParentOfType<ModuleOp>());
  auto reasons = op->getAttrOfType<DictionaryAttr>(dist::kReasonsAttr);
  for (StringAttr axis : op.getAxes().getNames()) {
    row.axes += (row.axes.empty() ? "" : ",") + axis.str();
    row.ranks *= mesh.findAxisSize(axis).value_or(1);
    if (auto reason = reasons ? reasons.getAs<StringAttr>(axis) : StringAttr())
      row.reasons.push_back(reason.str());
    else // the op's own: a softmax of which ranks have some of the classes
      row.reasons.push_back("the op works on what " + axis.str() +
                            " leaves of its dimensions, and needs this of all");
  }
  return row;
}

/// What a call of an entry runs, in the order of its tasks.
static std::vector<CollectiveRow> collect(ModuleOp module,
                                          dist::ScheduleOp schedule) {
  std::vector<CollectiveRow> rows;
  llvm::MapVector<func::FuncOp, int64_t> runs;
  schedule.walk([&](dist::RunOp run) {
    runs[module.lookupSymbol<func::FuncOp>(run.getTaskAttr())] +=
        run.getTrips();
  });
  for (auto &[task, count] : runs)
    func::FuncOp(task).walk(
        [&, &task = task, &count = count](dist::CollectiveOpInterface op) {
          if (op.communicates() && op->getNumOperands() > 0)
            rows.push_back(describe(op, task, count));
        });
  return rows;
}

static void printExplanationText(StringRef entry, ArrayRef<CollectiveRow> rows,
                                 llvm::raw_ostream &os) {
  os << "what ranks exchange in one call of '" << entry << "', and why:\n";
  report::Table table({"task", "kind", "axes", "ranks", "count", "bytes",
                       "dtype", "pass", "for the node", "because"});
  int64_t bytes = 0;
  for (const CollectiveRow &row : rows) {
    bytes += row.count * row.bytes;
    table.add({row.task, row.kind, row.axes, std::to_string(row.ranks),
               std::to_string(row.count), std::to_string(row.bytes) + " B",
               row.dtype, row.pass, row.node, llvm::join(row.reasons, "; ")});
  }
  table.print(os);
  os << rows.size() << " collectives, " << formatBytes(bytes)
     << " of each rank in a call\n";
}

static void printExplanationJson(
    ArrayRef<std::pair<std::string, std::vector<CollectiveRow>>> entries,
    llvm::raw_ostream &os) {
  llvm::json::OStream out(os, 1);
  out.array([&] {
    for (auto &[entry, rows] : entries)
      for (const CollectiveRow &row : rows)
        out.object([&, &entry = entry] {
          out.attribute("entry", entry);
          out.attribute("task", row.task);
          out.attribute("task_kind", row.taskKind);
          out.attribute("kind", row.kind);
          out.attribute("axes", row.axes);
          out.attribute("ranks", row.ranks);
          out.attribute("count", row.count);
          out.attribute("bytes", row.bytes);
          out.attribute("dtype", row.dtype);
          out.attribute("pass", row.pass);
          out.attribute("node", row.node);
          out.attributeArray("because", [&] {
            for (const std::string &reason : row.reasons)
              out.value(reason);
          });
        });
  });
  os << "\n";
}

LogicalResult report::explainCollectives(ModuleOp module, llvm::raw_ostream &os,
                                         bool json) {
  std::vector<std::pair<std::string, std::vector<CollectiveRow>>> entries;
  for (auto schedule : module.getOps<dist::ScheduleOp>()) {
    auto entry = module.lookupSymbol<func::FuncOp>(schedule.getEntryAttr());
    std::string name = schedule.getEntry().str();
    if (auto kind = entry ? nn::getEntryKind(entry) : std::nullopt)
      name = nn::stringifyEntryKind(*kind).str();
    entries.emplace_back(name, collect(module, schedule));
  }
  if (json) {
    printExplanationJson(entries, os);
    return success();
  }
  for (auto &[entry, rows] : entries)
    printExplanationText(entry, rows, os);
  return success();
}
