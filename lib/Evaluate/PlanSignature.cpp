// The signature of a plan: what its read and write commands name.

#include "dialects/Plan/Plan.h"
#include "lib/Evaluate/Entry.h"

using namespace mlir;
using namespace accel;
using namespace accel::evaluate;

static void insert(SmallVectorImpl<NamedType> &list, StringRef name,
                   plan::PartAttr part, plan::ViewAttr view) {
  if (llvm::none_of(list, [&](NamedType &each) { return each.name == name; }))
    list.push_back({name.str(),
                    RankedTensorType::get(part.getShape(), view.getElement())});
}

FailureOr<Signature> evaluate::getPlanSignature(ModuleOp module) {
  Signature signature;
  module.walk([&](Operation *op) {
    if (auto read = dyn_cast<plan::ReadOp>(op);
        read && read.getSource() == plan::Source::input)
      insert(signature.inputs, read.getName(), read.getPart(),
             read.getTarget());
    if (auto write = dyn_cast<plan::WriteOp>(op);
        write && write.getTarget() == plan::Source::output)
      insert(signature.outputs, write.getName(), write.getPart(),
             write.getView());
  });
  return signature;
}
