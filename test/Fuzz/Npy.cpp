// The runtime's reader of .npy files: what it takes can be read whole.

#include "Data/OpenTensor.h"
#include "ReadWhole.h"

using namespace accel;
using namespace accel::fuzz;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static MemoryFile file("x.npy");
  file.write(textOf(data, size));
  rt::TensorRange range;
  rt::Status status = rt::openNpy(file.descriptor(), "x.npy", range);
  if (status.ok())
    readWhole(range);
  else
    require(!status.message().empty(), "an error says something");
  return 0;
}
