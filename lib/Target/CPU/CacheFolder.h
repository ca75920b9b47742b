// Where a target remembers what took time to find out.

#ifndef ACCEL_LIB_TARGET_CPU_CACHEFOLDER_H
#define ACCEL_LIB_TARGET_CPU_CACHEFOLDER_H

#include <string>

namespace accel::cpu {

/// $ACCEL_CACHE, else $XDG_CACHE_HOME/acc, else ~/.cache/acc; empty where there
/// is no home. The folder need not exist.
std::string getCacheFolder();

} // namespace accel::cpu

#endif // ACCEL_LIB_TARGET_CPU_CACHEFOLDER_H
