// The forms that were fastest before, in a text file: key, then packed, bf16x6,
// chunk rows, chunk columns.

#include "CacheFolder.h"
#include "GemmForms.h"

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FileUtilities.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include <map>

using namespace llvm;
using namespace accel;
using namespace accel::cpu;

FormMemory::FormMemory() {
  std::string folder = getCacheFolder();
  if (folder.empty())
    return;
  path = folder + "/gemm-forms";
  auto buffer = MemoryBuffer::getFile(path);
  if (!buffer)
    return;
  SmallVector<StringRef> lines, words;
  (*buffer)->getBuffer().split(lines, '\n');
  for (StringRef line : lines) {
    words.clear();
    line.split(words, ' ');
    rt::cpu::GemmForm form;
    unsigned packed, bf16x6;
    if (words.size() != 5 || words[1].getAsInteger(10, packed) ||
        words[2].getAsInteger(10, bf16x6) ||
        words[3].getAsInteger(10, form.chunkRows) ||
        words[4].getAsInteger(10, form.chunkColumns) || packed > 1 ||
        bf16x6 > 1 || form.chunkRows < 0 || form.chunkColumns < 0)
      continue;
    form.packed = packed;
    form.bf16x6 = bf16x6;
    forms[words[0]] = form;
  }
}

FormMemory::~FormMemory() {
  if (!changed || path.empty() ||
      sys::fs::create_directories(sys::path::parent_path(path)))
    return;
  std::map<StringRef, const rt::cpu::GemmForm *> sorted;
  for (auto &entry : forms)
    sorted[entry.getKey()] = &entry.getValue();
  Error written = writeToOutput(path, [&](raw_ostream &os) {
    for (auto [key, form] : sorted)
      os << key << " " << int(form->packed) << " " << int(form->bf16x6) << " "
         << form->chunkRows << " " << form->chunkColumns << "\n";
    return Error::success();
  });
  consumeError(std::move(written));
}

const rt::cpu::GemmForm *FormMemory::find(StringRef key) const {
  auto found = forms.find(key);
  return found == forms.end() ? nullptr : &found->second;
}

void FormMemory::insert(StringRef key, const rt::cpu::GemmForm &form) {
  forms[key] = form;
  changed = true;
}
