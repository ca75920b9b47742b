// Looks for the nodes of cuts in the program.

#include "CheckCuts.h"

#include "dialects/NN/Entry.h"
#include "lib/Stages/CutNames.h"

using namespace mlir;
using namespace accel;

LogicalResult driver::checkCuts(const onnxio::OnnxFile &file, ModuleOp module,
                                ArrayRef<std::string> cuts) {
  func::FuncOp entry = nn::findEntry(module, nn::EntryKind::forward);
  if (cuts.empty() || !entry)
    return success();
  stages::CutNames names(entry);
  for (const std::string &cut : cuts) {
    if (names.contains(cut))
      continue;
    for (const onnx::NodeProto &node : file.graph().node())
      if (node.name() == cut) {
        InFlightDiagnostic error =
            emitError(file.location(node))
            << "cannot cut the model here: no op of the program stands for "
               "this node, which was folded into a constant or left out";
        if (std::string near = names.nearest(cut); !near.empty())
          error << "; the nearest of those that are left is '" << near << "'";
        return error;
      }
  }
  return success();
}
