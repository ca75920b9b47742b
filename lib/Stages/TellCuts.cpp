// Weighs cuts as the balance does: the longest chunk, and the largest.

#include "TellCuts.h"

#include "dialects/Accel/ValueName.h"
#include "lib/Cost/Decision.h"
#include "lib/Cost/Machine.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace accel;
using namespace accel::stages;

/// The name of the ONNX node that an op was, or its own.
static std::string getName(Operation *op) {
  std::string name;
  op->getLoc()->walk([&](Location inner) {
    StringAttr written = getValueName(inner);
    auto node = dyn_cast<NameLoc>(inner);
    if (!written && !node)
      return WalkResult::advance();
    name = (written ? written : node.getName()).str();
    return WalkResult::interrupt();
  });
  return name.empty() ? op->getName().getStringRef().str() : name;
}

/// What crossing a place takes.
static double getSent(const Row &row, size_t at) {
  for (const Row::Place &place : row.places)
    if (place.at == at)
      return place.sent;
  return 0;
}

/// Cut before these ops of the spine, whose longest chunk takes so long of the
/// whole batch, and whose largest has so many bytes.
static cost::Alternative weigh(ArrayRef<Operation *> spine, const Row &row,
                               ArrayRef<double> copies, ArrayRef<size_t> ends,
                               StringRef detail) {
  double longest = 0, largest = 0;
  SmallVector<std::string> names;
  size_t begin = 0;
  for (size_t chunk = 0; chunk <= ends.size(); ++chunk) {
    bool isLast = chunk == ends.size();
    size_t end = isLast ? spine.size() : ends[chunk];
    double sent =
        (begin ? getSent(row, begin) : 0) + (isLast ? 0 : getSent(row, end));
    longest = std::max(longest, row.work[end] - row.work[begin] + sent);
    largest = std::max(largest,
                       row.states[end] - row.states[begin] +
                           copies[chunk] * (row.kept[end] - row.kept[begin]));
    if (!isLast)
      names.push_back(getName(spine[end]));
    begin = end;
  }
  return {llvm::join(names, ", "), cost::getSeconds(longest), int64_t(largest),
          detail.str()};
}

void stages::tellCuts(func::FuncOp entry, ArrayRef<Operation *> spine,
                      const Row &row, ArrayRef<double> copies,
                      ArrayRef<size_t> ends, bool areNamed) {
  cost::Decision decision{
      cost::kCuts.str(),
      entry.getSymName().str(),
      weigh(spine, row, copies, ends, ""),
      {},
      areNamed ? "--cut"
               : "the longest chunk is as short as can be, but for 1 %; of "
                 "those the largest has the fewest bytes"};
  auto add = [&](ArrayRef<size_t> others, StringRef detail) {
    if (others != ends)
      decision.others.push_back(weigh(spine, row, copies, others, detail));
  };
  if (auto balanced = balance(row, copies))
    add(*balanced, "balanced");
  std::vector<size_t> even;
  for (size_t chunk = 1; chunk < copies.size(); ++chunk)
    for (const Row::Place &place : row.places)
      if (place.at >= chunk * spine.size() / copies.size() &&
          (even.empty() || place.at > even.back())) {
        even.push_back(place.at);
        break;
      }
  if (even.size() == ends.size())
    add(even, "as many ops each");
  cost::tell(entry->getParentOfType<ModuleOp>(), decision);
}
