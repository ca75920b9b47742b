// Looks an input up in what was said.

#include "lib/Names/BatchDim.h"

using namespace llvm;

std::optional<unsigned> accel::batchDimOf(StringRef input,
                                          ArrayRef<std::string> batchDims) {
  for (StringRef one : batchDims) {
    auto [name, dim] = one.rsplit('=');
    unsigned value;
    if (name == input)
      return dim.getAsInteger(10, value) ? std::nullopt : std::optional(value);
  }
  return 0;
}
