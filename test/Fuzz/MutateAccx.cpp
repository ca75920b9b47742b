// Half of the mutants of an executable are programs that say something else in
// one to three fields; the others are mutants of the text.

#include "test/Tools/MutateHeader.h"

#include <algorithm>
#include <cstdint>
#include <string>

extern "C" size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t maxSize);

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size,
                                          size_t maxSize, unsigned seed) {
  using Mutator = accel::test::HeaderMutator;
  std::string text(reinterpret_cast<char *>(data), size);
  size_t end = std::min(text.find('\0'), size);
  auto json = Mutator::Json::parse(text.substr(0, end), nullptr,
                                   /*allow_exceptions=*/false);
  if (seed % 4 == 0 || !json.is_object())
    return LLVMFuzzerMutate(data, size, maxSize);
  Mutator mutator(seed);
  for (unsigned left = 1 + seed / 4 % 3; left > 0; --left)
    mutator.change(seed % 16 == 1 || !json.contains("accx") ? json
                                                            : json["accx"]);
  text.replace(
      0, end,
      json.dump(-1, ' ', false, Mutator::Json::error_handler_t::replace));
  size_t length = std::min(text.size(), maxSize);
  std::copy_n(text.begin(), length, data);
  return length;
}
