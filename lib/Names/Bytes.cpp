// Writes bytes, reads budgets, and asks what a machine has.

#include "Bytes.h"

#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MemoryBuffer.h"
#include <cmath>
#include <unistd.h>

using namespace llvm;
using namespace accel;

std::string accel::formatBytes(int64_t bytes) {
  static constexpr const char *kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  double value = bytes;
  size_t unit = 0;
  for (; value >= 1024 && unit + 1 < std::size(kUnits); ++unit)
    value /= 1024;
  if (unit == 0)
    return std::to_string(bytes) + " B";
  return llvm::formatv("{0:f1} {1} ({2})", value, kUnits[unit], bytes).str();
}

/// The bytes of a unit; 0 of none.
static double getUnit(StringRef unit) {
  static constexpr StringLiteral kPrefixes = "KMGT";
  if (unit.empty() || unit == "B")
    return 1;
  size_t power = kPrefixes.find(unit.front());
  if (power == StringRef::npos)
    return 0;
  StringRef rest = unit.drop_front();
  if (rest.empty() || rest == "iB")
    return std::pow(1024, power + 1);
  return rest == "B" ? std::pow(1000, power + 1) : 0;
}

Expected<MemoryBudget> MemoryBudget::parse(StringRef text) {
  auto fail = [&] {
    return createStringError(
        inconvertibleErrorCode(),
        "expected a memory budget in bytes, as 12GiB, or as 80% of what a rank "
        "has, found '" +
            text + "'");
  };
  size_t end = text.find_first_not_of("0123456789.");
  double number;
  if (text.take_front(end).getAsDouble(number) || !(number > 0))
    return fail();
  StringRef unit = end == StringRef::npos ? "" : text.drop_front(end).ltrim();
  MemoryBudget budget;
  if (unit == "%") {
    budget.percent = number;
    return number <= 100 ? Expected<MemoryBudget>(budget) : fail();
  }
  double bytes = number * getUnit(unit);
  if (!(bytes >= 1) || bytes >= 0x1p62)
    return fail();
  // Whole numbers are not rounded.
  if (unit.empty() && !text.getAsInteger(10, budget.bytes))
    return budget;
  budget.bytes = int64_t(bytes);
  return budget;
}

int64_t MemoryBudget::resolve(int64_t memory) const {
  return percent > 0 ? int64_t(double(memory) * percent / 100) : bytes;
}

int64_t accel::getMachineMemory() {
  int64_t bytes =
      int64_t(sysconf(_SC_PHYS_PAGES)) * int64_t(sysconf(_SC_PAGE_SIZE));
  for (const char *limit : {"/sys/fs/cgroup/memory.max",
                            "/sys/fs/cgroup/memory/memory.limit_in_bytes"}) {
    int64_t most;
    auto file = MemoryBuffer::getFileAsStream(limit);
    if (file && !(*file)->getBuffer().trim().getAsInteger(10, most))
      bytes = std::min(bytes, most);
  }
  return bytes;
}
