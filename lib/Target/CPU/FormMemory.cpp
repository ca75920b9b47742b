// The forms that were fastest before: an entry of the cache per product, whose
// content is the product and the form as text: key, packed, bf16x6, chunk rows,
// chunk columns. It is not parsed, but compared with what may stand there.

#include "GemmForms.h"

#include "llvm/ADT/STLExtras.h"

using namespace llvm;
using namespace accel;
using namespace accel::cpu;
using rt::cpu::GemmForm;

static std::string write(StringRef key, const GemmForm &form) {
  return (key + " " + Twine(int(form.packed)) + " " + Twine(int(form.bf16x6)) +
          " " + Twine(form.chunkRows) + " " + Twine(form.chunkColumns) + "\n")
      .str();
}

FormMemory::FormMemory(std::string folder, Cache::Warn warn)
    : cache(std::move(folder), "form", "the forms of products",
            std::move(warn)) {}

std::optional<GemmForm>
FormMemory::find(StringRef key, ArrayRef<GemmForm> forms,
                 function_ref<bool(const GemmForm &)> isLegal) {
  if (auto found = known.find(key); found != known.end())
    return found->second;
  std::optional<std::string> content = cache.find(key);
  if (!content)
    return std::nullopt;
  const GemmForm *found = llvm::find_if(forms, [&](const GemmForm &form) {
    return write(key, form) == *content && isLegal(form);
  });
  if (found == forms.end()) {
    cache.discard(key,
                  "one of " + Twine(forms.size()) + " forms of '" + key + "'",
                  "'" + StringRef(*content).rtrim() + "'");
    return std::nullopt;
  }
  known[key] = *found;
  return *found;
}

void FormMemory::insert(StringRef key, const GemmForm &form, double seconds) {
  ++measured.products;
  measured.seconds += seconds;
  known[key] = form;
  measured.kept &= cache.insert(key, write(key, form));
}
