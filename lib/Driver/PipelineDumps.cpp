// Folders and texts of pipelines. The flag is MLIR's own, and so is what reads
// it: the folder is changed where the flag keeps it.

#include "PipelineDumps.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;

namespace accel::driver {

TreeFolders::TreeFolders() {
  auto &options = llvm::cl::getRegisteredOptions();
  auto found = options.find("mlir-print-ir-tree-dir");
  if (found == options.end() || found->second->getNumOccurrences() == 0)
    return;
  flag = static_cast<llvm::cl::opt<std::string> *>(found->second);
  folder = flag->getValue();
}

TreeFolders::~TreeFolders() {
  if (flag)
    flag->setValue(folder);
}

void TreeFolders::enter(llvm::StringRef name) {
  if (!flag)
    return;
  std::string label = (llvm::Twine(count++) + "-").str();
  for (char c : name)
    label += llvm::isAlnum(c) ? c : '-';
  llvm::SmallString<128> path(folder);
  llvm::sys::path::append(path, label);
  // MLIR makes the last folder alone. Where this fails, it says so.
  (void)llvm::sys::fs::create_directories(folder);
  flag->setValue(path.str().str());
}

void printPipeline(llvm::StringRef phase, PassManager &pipeline) {
  llvm::errs() << "// phase " << phase << "\n";
  pipeline.printAsTextualPipeline(llvm::errs());
  llvm::errs() << "\n";
}

} // namespace accel::driver
