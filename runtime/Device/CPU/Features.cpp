// Whether this machine has the CPU features that a file was compiled for.

#include "Base/SystemError.h"
#include "Device/CPU/CpuDevice.h"
#include "accel-rt/FeatureFormat.h"

#include <cerrno>
#include <fstream>
#include <set>
#include <sstream>

namespace accel::rt::cpu {

Status findMissingFeatures(const std::vector<std::string> &features,
                           std::vector<std::string> &missing) {
  missing.clear();
  if (features.empty())
    return Status();
  std::set<std::string> here;
  std::ifstream file("/proc/cpuinfo");
  if (!file)
    return Status::error("cannot read the features of this CPU from "
                         "'/proc/cpuinfo': " +
                         systemError(errno));
  errno = 0;
  for (std::string line; std::getline(file, line);) {
    if (line.rfind("flags", 0) != 0)
      continue;
    std::istringstream words(line.substr(line.find(':') + 1));
    for (std::string word; words >> word;)
      here.insert(word);
    break;
  }
  // Nothing read is no CPU without features.
  if (here.empty())
    return Status::error("cannot read the features of this CPU from "
                         "'/proc/cpuinfo': " +
                         systemError(errno ? errno : EIO));
  for (const std::string &feature : features)
    if (!here.count(feature))
      missing.push_back(feature);
  return Status();
}

Status checkMachine(const Executable &plan, const std::string &path) {
  std::vector<std::string> missing;
  ACCEL_RT_RETURN_IF_ERROR(
      findMissingFeatures(featuresOf(plan, kName), missing));
  if (missing.empty())
    return Status();
  std::string names;
  for (const std::string &name : missing)
    names += (names.empty() ? "" : ", ") + name;
  return Status::error(inQuotes(path) + " was compiled for a CPU with " +
                       names + ", which this one lacks");
}

} // namespace accel::rt::cpu
