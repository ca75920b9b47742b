// Config files in JSON, as DeepSpeed reads them: what is not JSON becomes it
// by a brace in front.

#include "Config.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  std::string text(accel::fuzz::textOf(data, size));
  if (text.find_first_not_of(" \t\r\n") == text.npos ||
      text[text.find_first_not_of(" \t\r\n")] != '{')
    text = "{\"" + text;
  accel::fuzz::resolve(std::move(text), "config.json");
  return 0;
}
