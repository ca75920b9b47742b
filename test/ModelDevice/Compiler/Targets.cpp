// The table of targets of accel-model-opt, linked in the place of
// lib/Driver/Targets.cpp: beside the tool's own there is the compiler's side of
// the model device.

#include "lib/Driver/Targets.h"

#include "ModelTarget.h"
#include "lib/Target/CPU/Target.h"
#include "lib/Target/Null/Target.h"

std::vector<accel::TargetTable::Row> accel::driver::targetRows() {
  return {cpu::getTargetRow(), null::getTargetRow(), model::getTargetRow()};
}
