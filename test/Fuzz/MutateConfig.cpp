// Half of the mutants of a config file are made by its schema: a key that is
// legal somewhere, with a value that its row names or that another has, in a
// line of YAML or after a brace or comma of JSON.

#include "lib/Config/Schema.h"

#include <random>

using namespace accel::config;

extern "C" size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t maxSize);

namespace {

template <class T>
const T &pick(std::minstd_rand &random, const T *first, size_t count) {
  return first[random() % count];
}

std::string valueOf(std::minstd_rand &random, const Key &key) {
  static constexpr const char *kValues[] = {
      "true", "false",     "auto",      "null", "0",    "1",
      "2",    "8",         "-1",        "1e8",  "5e8",  "0.5",
      "no",   "DEEPSPEED", "FSDP",      "bf16", "fp16", "{}",
      "[]",   "[0.9, 1]",  "MULTI_GPU", "1e-5", "x",    "9223372036854775807"};
  if (random() % 2)
    return pick(random, kValues, std::size(kValues));
  const llvm::StringRef rows[] = {key.type, key.harmless, key.fallback};
  llvm::SmallVector<llvm::StringRef> words;
  pick(random, rows, 3).split(words, '|');
  llvm::SmallVector<llvm::StringRef> parts;
  pick(random, words.data(), words.size()).split(parts, ',');
  return pick(random, parts.data(), parts.size()).ltrim('~').str();
}

std::string insertKey(std::string text, std::minstd_rand &random) {
  const Section &section = *pick(random, sections().data(), sections().size());
  if (section.keys.empty())
    return text;
  const Key &key = pick(random, section.keys.data(), section.keys.size());
  std::string name =
      (random() % 2 ? section.prefix : "").str() + key.name.str();
  std::string value = valueOf(random, key);
  bool isJson = text.find('{') < 2;
  std::vector<size_t> places = {0};
  for (size_t at = 0; at < text.size(); ++at)
    if (isJson ? text[at] == '{' || text[at] == ',' : text[at] == '\n')
      places.push_back(at + 1);
  size_t at = pick(random, places.data(), places.size());
  if (!isJson)
    return text.insert(at, std::string(random() % 2 * 2, ' ') + name + ": " +
                               value + "\n");
  bool isQuoted = random() % 4 == 0;
  std::string quote = isQuoted ? "\"" : "";
  return text.insert(at, "\"" + name + "\": " + quote + value + quote + ",");
}

} // namespace

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size,
                                          size_t maxSize, unsigned seed) {
  std::minstd_rand random(seed);
  if (random() % 2)
    return LLVMFuzzerMutate(data, size, maxSize);
  std::string text =
      insertKey(std::string(reinterpret_cast<char *>(data), size), random);
  size_t length = std::min(text.size(), maxSize);
  std::copy_n(text.begin(), length, data);
  return length;
}
