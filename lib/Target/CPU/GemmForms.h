// Which form of a matrix product is the fastest: tried on this machine, once
// per shape, and remembered on disk.

#ifndef ACCEL_LIB_TARGET_CPU_GEMMFORMS_H
#define ACCEL_LIB_TARGET_CPU_GEMMFORMS_H

#include "Cache.h"
#include "Device/CPU/Gemm/Gemm.h"
#include "mlir/Support/LLVM.h"
#include "llvm/ADT/StringMap.h"
#include <optional>
#include <string>

namespace accel::cpu {

/// What is known about a product besides its shape.
struct GemmUse {
  bool constantWeights = false; ///< b may be packed, at load
  int64_t threads = 1;          ///< that will run it
};

/// The forms remembered from earlier compilations on this machine, in the cache
/// folder. A form is remembered as soon as it is known, and once it was asked
/// for it stays the same for as long as this object lives.
class FormMemory {
public:
  FormMemory(std::string folder, Cache::Warn warn);
  /// The form remembered for a product; none if it is not among `forms`, or not
  /// legal on this machine, which would be an error in every compilation from
  /// then on.
  std::optional<rt::cpu::GemmForm>
  find(llvm::StringRef key, llvm::ArrayRef<rt::cpu::GemmForm> forms,
       llvm::function_ref<bool(const rt::cpu::GemmForm &)> isLegal);
  /// Remembers a form that took `seconds` to find.
  void insert(llvm::StringRef key, const rt::cpu::GemmForm &form,
              double seconds);

  /// What this compilation has found by measuring.
  struct Measured {
    int64_t products = 0;
    double seconds = 0;
    bool kept = true;    ///< All of it, for later compilations.
    int64_t skipped = 0; ///< for lack of time: those took the default
  };
  Measured getMeasured() const { return measured; }
  void skip() { ++measured.skipped; }

private:
  Measured measured;
  Cache cache;
  llvm::StringMap<rt::cpu::GemmForm> known;
};

/// The form that a product takes where nothing can be measured: as many chunks
/// of rows as threads. Deterministic.
rt::cpu::GemmForm getDefaultForm(const rt::cpu::GemmDesc &desc,
                                 const GemmUse &use);

/// The fastest legal form on this machine: remembered, or else measured now, on
/// as many threads as will run it. Small products are not worth measuring and
/// take the default, and so does what is new when measuring has taken a minute.
/// Packing has to be faster by a twentieth: it costs memory.
rt::cpu::GemmForm chooseForm(const rt::cpu::GemmDesc &desc, const GemmUse &use,
                             FormMemory &memory);

} // namespace accel::cpu

#endif // ACCEL_LIB_TARGET_CPU_GEMMFORMS_H
