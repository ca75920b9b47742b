// Finding a target by the word that its text begins with.

#include "TargetTable.h"

#include "mlir/IR/MLIRContext.h"
#include "llvm/ADT/MapVector.h"
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

FailureOr<SmallVector<const Target *>>
accel::findTargets(ModuleOp plan, StringRef text, int64_t threads) {
  FailureOr<const Target *> first = findTarget(plan, text, threads);
  if (failed(first))
    return failure();
  SmallVector<const Target *> targets{*first};
  llvm::MapVector<plan::Engine, plan::BodyOp> bodies;
  plan.walk([&](plan::BodyOp body) {
    bodies.insert({body.getEngine(), body});
  });
  if (plan::Engine own = (*first)->getEngine();
      !bodies.empty() && bodies.front().first != own) {
    auto [engine, body] = bodies.front();
    return body.emitOpError()
           << "expected engine '" << plan::stringifyEngine(own)
           << "', which executes what is made for '" << (*first)->getText()
           << "', found '" << plan::stringifyEngine(engine)
           << "': the plan was made for another target";
  }
  for (auto [engine, body] : bodies) {
    if (engine == (*first)->getEngine())
      continue;
    FailureOr<const Target *> other =
        findTarget(plan, plan::stringifyEngine(engine), threads);
    if (failed(other))
      return failure();
    targets.push_back(*other);
  }
  return targets;
}
