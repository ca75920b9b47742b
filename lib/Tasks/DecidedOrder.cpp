// Orders of tasks as texts, which anybody may have changed.

#include "DecidedOrder.h"

#include "dialects/Accel/Accel.h"
#include "lib/Pipeline/Verify.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace accel;
using namespace accel::tasks;

ArrayAttr tasks::writeOrder(Builder &builder,
                            const pipeline::Schedule &schedule) {
  SmallVector<Attribute> stages;
  for (const std::vector<pipeline::Task> &list : schedule.ranks) {
    auto texts = llvm::map_to_vector(list, [](const pipeline::Task &task) {
      return pipeline::toString(task);
    });
    stages.push_back(builder.getStringAttr(llvm::join(texts, " ")));
  }
  return builder.getArrayAttr(stages);
}

FailureOr<pipeline::Schedule> tasks::readOrder(Operation *at,
                                               DictionaryAttr decisions,
                                               int64_t stages,
                                               int64_t microBatches) {
  auto order = decisions ? decisions.getAs<ArrayAttr>(kOrderKey) : nullptr;
  if (!order || int64_t(order.size()) != stages ||
      !llvm::all_of(order, llvm::IsaPred<StringAttr>)) {
    auto error = at->emitError()
                 << "expected beside schedule auto an 'order' in '"
                 << kDecisionsAttr << "' with a text for each of " << stages
                 << " stages, as search-decide writes it, found ";
    return order ? error << order : error << "none";
  }
  pipeline::Schedule schedule;
  schedule.placement = pipeline::Placement::linear(stages);
  schedule.microBatches = microBatches;
  auto fail = [&](llvm::Error error) {
    return at->emitError() << "'order' of '" << kDecisionsAttr
                           << "': " << llvm::toString(std::move(error));
  };
  for (auto text : order.getAsRange<StringAttr>()) {
    std::vector<pipeline::Task> &list = schedule.ranks.emplace_back();
    for (StringRef each : llvm::split(text.getValue(), ' ')) {
      auto task = pipeline::parseTask(each);
      if (!task)
        return fail(task.takeError());
      list.push_back(*task);
    }
  }
  if (llvm::Error error =
          pipeline::verifyOrder(schedule, pipeline::makeChain(stages)))
    return fail(std::move(error));
  return schedule;
}
