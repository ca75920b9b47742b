// The runtime's reader of ONNX test inputs, which has no schema: what it takes
// can be read whole.

#include "Data/OpenTensor.h"
#include "ReadWhole.h"

using namespace accel;
using namespace accel::fuzz;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static MemoryFile file("input_0.pb");
  file.write(textOf(data, size));
  rt::TensorRange range;
  rt::FileHandle memory;
  std::string name;
  rt::Status status =
      rt::openTensorProto(file.descriptor(), "input_0.pb", range, name, memory);
  if (status.ok())
    readWhole(range);
  else
    require(!status.message().empty(), "an error says something");
  return 0;
}
