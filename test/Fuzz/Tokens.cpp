// Files of tokens: a .npy or raw integers. The first byte says which type is
// asked for, the second how long the program's samples are.

#include "ByteSource.h"
#include "Data/TokenFile.h"
#include "Target.h"

#include <vector>

using namespace accel;
using namespace accel::fuzz;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static constexpr const char *kTypes[] = {"",       "",      "uint16", "int32",
                                           "uint32", "int64", "int8"};
  static MemoryFile file("tokens");
  ByteSource source(data, std::min<size_t>(size, 2));
  std::string type = source.pick(kTypes);
  int64_t length = source.byte();
  size_t used = std::min<size_t>(size, 2);
  file.write(textOf(data + used, size - used));
  rt::TokenFile tokens;
  rt::Status status = tokens.open(file.path(), type, length);
  require(status.ok() || !status.message().empty(), "an error says something");
  if (!status.ok())
    return 0;
  require(tokens.numSamples() > 0, "there is a sample");
  uint64_t hash = 0, last = 0;
  status = tokens.hash([&](uint64_t done, uint64_t) { last = done; }, hash);
  require(status.ok() && last > 0, "all samples can be hashed");
  std::vector<int64_t> sample(static_cast<size_t>(length));
  for (int64_t i : {int64_t(0), tokens.numSamples() - 1})
    require(tokens.read(i, 0, length, sample.data()).ok(),
            "first and last sample can be read");
  return 0;
}
