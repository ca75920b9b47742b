// What the groups are called. LLVM lists them by the alphabet.

#include "FlagCategories.h"

#include "llvm/ADT/STLExtras.h"

using llvm::cl::OptionCategory;

OptionCategory modelFlags("Model");
OptionCategory trainingFlags("Training");
OptionCategory layoutFlags("Layout");
OptionCategory configFlags("Config files");
OptionCategory outputFlags("Output");
OptionCategory reportFlags("Reports");

bool isOurCategory(const OptionCategory *category) {
  return llvm::is_contained({&modelFlags, &trainingFlags, &layoutFlags,
                             &configFlags, &outputFlags, &reportFlags},
                            category);
}
