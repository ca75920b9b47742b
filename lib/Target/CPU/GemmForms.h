// Which form of a matrix product is the fastest: tried on this machine, once
// per shape, and remembered on disk.

#ifndef ACCEL_LIB_TARGET_CPU_GEMMFORMS_H
#define ACCEL_LIB_TARGET_CPU_GEMMFORMS_H

#include "Device/CPU/Gemm/Gemm.h"
#include "mlir/Support/LLVM.h"
#include "llvm/ADT/StringMap.h"
#include <string>

namespace accel::cpu {

/// What is known about a product besides its shape.
struct GemmUse {
  bool constantWeights = false; ///< b may be packed, at load
  int64_t threads = 1;          ///< that will run it
};

/// The forms remembered from earlier compilations on this machine: one line
/// each in `gemm-forms` of the cache folder ($ACCEL_CACHE, else
/// $XDG_CACHE_HOME/acc, else ~/.cache/acc). A file that is absent or damaged is
/// an empty memory; not being able to write it is no error.
class FormMemory {
public:
  FormMemory();
  /// Writes what is new, as a whole: temporary and rename.
  ~FormMemory();
  const rt::cpu::GemmForm *find(llvm::StringRef key) const;
  void insert(llvm::StringRef key, const rt::cpu::GemmForm &form);

private:
  std::string path;
  llvm::StringMap<rt::cpu::GemmForm> forms;
  bool changed = false;
};

/// The form that a product takes where nothing can be measured: as many chunks
/// of rows as threads. Deterministic.
rt::cpu::GemmForm getDefaultForm(const rt::cpu::GemmDesc &desc,
                                 const GemmUse &use);

/// The fastest legal form on this machine: remembered, or else measured now, on
/// as many threads as will run it. Small products are not worth measuring and
/// take the default. Packing has to be faster by a twentieth: it costs memory.
rt::cpu::GemmForm chooseForm(const rt::cpu::GemmDesc &desc, const GemmUse &use,
                             FormMemory &memory);

} // namespace accel::cpu

#endif // ACCEL_LIB_TARGET_CPU_GEMMFORMS_H
