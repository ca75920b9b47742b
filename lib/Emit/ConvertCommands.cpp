// What stands beside a command's own fields: its stream, node, releases,
// arithmetic, and the pass that put it there.

#include "ConvertCommands.h"

#include "AttributeReader.h"
#include "lib/Plan/Summary.h"

using namespace mlir;
using namespace accel;
using namespace accel::emit;

FailureOr<rt::Command> emit::convertCommand(Operation *op,
                                            ProgramNames &names) {
  rt::Command command;
  if (failed(AttributeReader(op, names).read(command)))
    return failure();
  // A group is queued where its members are.
  op->walk([&](plan::CommandOpInterface one) {
    command.stream = one.getStreamName().str();
  });
  if (auto one = dyn_cast<plan::CommandOpInterface>(op))
    if (int64_t flops = plan::countFlops(one, names.symbols))
      command.flops = flops;
  command.node = getNodeNames(op);
  if (auto pass = op->getAttrOfType<StringAttr>(plan::kInsertedByAttr))
    command.insertedBy = pass.str();
  if (auto releases = op->getAttrOfType<ArrayAttr>(plan::kReleasesAttr))
    for (auto released : releases.getAsRange<plan::ViewAttr>()) {
      FailureOr<rt::View> view =
          convertView(op->getLoc(), released, names.buffers);
      if (failed(view))
        return failure();
      command.releases.push_back(std::move(*view));
    }
  return command;
}
