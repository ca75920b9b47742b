// Names of low-rank adapters: of PEFT (lora_A.default.weight,
// lora_embedding_A), loralib (lora_A), torchtune (lora_a.weight) and kohya
// (lora_down.weight).

#include "Adapters.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include <array>

using namespace accel::onnxio;
using llvm::StringRef;

/// The first and the second matrix, in lower case.
static constexpr std::array<std::pair<const char *, const char *>, 3> kWords = {
    {{"lora_a", "lora_b"},
     {"lora_embedding_a", "lora_embedding_b"},
     {"lora_down", "lora_up"}}};

std::optional<AdapterName> accel::onnxio::readAdapterName(StringRef name) {
  for (size_t begin = 0; begin < name.size();) {
    size_t end = std::min(name.find('.', begin), name.size());
    std::string word = name.slice(begin, end).lower();
    StringRef module = name.take_front(begin == 0 ? 0 : begin - 1);
    for (auto [first, second] : kWords)
      if (word == first || word == second)
        return AdapterName{module, word == second};
    begin = end + 1;
  }
  return std::nullopt;
}

/// A name of more parts is none that a module gave.
static constexpr int kDeepest = 64;

std::optional<std::string>
accel::onnxio::findAdaptedModule(llvm::ArrayRef<StringRef> names) {
  llvm::StringSet<> first, both;
  for (bool isSecond : {false, true})
    for (StringRef name : names)
      if (std::optional<AdapterName> adapter = readAdapterName(name);
          adapter && adapter->isSecond == isSecond)
        if (!isSecond || first.contains(adapter->module))
          (isSecond ? both : first).insert(adapter->module);
  if (both.empty())
    return std::nullopt;
  for (StringRef name : names) {
    if (readAdapterName(name))
      continue;
    StringRef module = name;
    for (int depth = 0; depth < kDeepest && module.contains('.'); ++depth) {
      module = module.rsplit('.').first;
      if (both.contains(module))
        return module.str();
    }
  }
  return std::nullopt;
}
