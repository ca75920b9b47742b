// Reads the names of nodes and modules from locations.

#include "CutNames.h"

#include "dialects/Accel/NodeNames.h"
#include "lib/Names/Nearest.h"

using namespace mlir;
using namespace accel;
using namespace accel::stages;

CutNames::CutNames(func::FuncOp entry) : entry(entry) {
  for (Operation &op : entry.front().without_terminator()) {
    auto into = [&op](llvm::StringMap<Ops> &names) {
      return [&op, &names](StringRef name) {
        Ops &ops = names[name];
        if (ops.empty() || ops.back() != &op)
          ops.push_back(&op);
      };
    };
    forEachName(op.getLoc(), into(ofNodes), into(ofModules));
  }
}

FailureOr<Operation *>
CutNames::find(StringRef name, function_ref<bool(Operation *)> isPlace) const {
  // `/transformer/h.1` is a module, too.
  std::string dotted = name.ltrim('/').str();
  std::replace(dotted.begin(), dotted.end(), '/', '.');
  bool isThere = false;
  for (const Ops &ops : {ofNodes.lookup(name), ofModules.lookup(dotted)}) {
    isThere |= !ops.empty();
    if (auto found = llvm::find_if(ops, isPlace); found != ops.end())
      return *found;
  }
  if (isThere)
    return entry.emitError()
           << "cannot cut the model at '" << name
           << "': it is made of inputs alone, or of states alone, and lies "
              "with whatever reads it";
  InFlightDiagnostic error = entry.emitError() << "unknown node or module '"
                                               << name << "' of --cut";
  if (std::string near = nearest(name); !near.empty())
    error << ", the nearest is '" << near << "'";
  return error;
}

std::string CutNames::nearest(StringRef name) const {
  // The same module inside of another one, which exporting has wrapped it in.
  SmallVector<StringRef> inside;
  for (StringRef key : ofModules.keys())
    if (key.ends_with(("." + name).str()))
      inside.push_back(key);
  if (!inside.empty())
    return llvm::min_element(inside,
                             [](StringRef one, StringRef other) {
                               return std::pair(one.size(), one) <
                                      std::pair(other.size(), other);
                             })
        ->str();
  SmallVector<StringRef> names, asDeep;
  for (const auto *each : {&ofNodes, &ofModules})
    for (StringRef key : each->keys())
      (key.count('.') == name.count('.') ? asDeep : names).push_back(key);
  // Who says h.12 means no h.
  if (name.contains('.') && !asDeep.empty())
    names = asDeep;
  else
    names.append(asDeep);
  // Hashing has no order, and of two that are as near the first is told.
  llvm::sort(names);
  return nearestName(name, names).str();
}
