// A new target adds a row.

#include "Targets.h"

#include "lib/Target/CPU/Target.h"
#include "lib/Target/Null/Target.h"

std::vector<accel::TargetTable::Row> accel::driver::targetRows() {
  return {cpu::getTargetRow(), null::getTargetRow()};
}
