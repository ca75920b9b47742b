// Finding a target by the word that its text begins with.

#include "TargetTable.h"

#include "mlir/IR/MLIRContext.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace accel;

FailureOr<const Target *> TargetTable::get(TargetOptions options,
                                           EmitError emitError) const {
  if (options.text.empty())
    options.text = rows.front().name;
  std::lock_guard<std::mutex> lock(mutex);
  std::unique_ptr<Target> &target = made[{options.text, options.threads}];
  if (target)
    return target.get();
  StringRef name = StringRef(options.text).split(':').first;
  auto row =
      llvm::find_if(rows, [&](const Row &row) { return row.name == name; });
  if (row == rows.end()) {
    std::string usages = llvm::join(
        llvm::map_range(rows, [](const Row &row) { return row.usage; }), ", ");
    emitError() << "expected a target (" << usages << "), found '"
                << options.text << "'";
    return failure();
  }
  FailureOr<std::unique_ptr<Target>> created = row->create(options, emitError);
  if (failed(created))
    return failure();
  target = std::move(*created);
  return target.get();
}

FailureOr<const Target *> accel::findTarget(ModuleOp module, StringRef text,
                                            int64_t threads) {
  Dialect *dialect = module.getContext()->getLoadedDialect<plan::PlanDialect>();
  const auto *table =
      dialect ? dialect->getRegisteredInterface<TargetTable>() : nullptr;
  if (!table)
    return module.emitError() << "expected a context with targets";
  return table->get({text.str(), threads}, [&] { return module.emitError(); });
}
