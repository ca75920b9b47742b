// Config files in YAML, as `accelerate config` writes them.

#include "Config.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  accel::fuzz::resolve(std::string(accel::fuzz::textOf(data, size)),
                       "config.yaml");
  return 0;
}
