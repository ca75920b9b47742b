// Whether this machine has the CPU features that a file was compiled for.

#include "accel-rt/Runtime.h"

#include <fstream>
#include <set>
#include <sstream>

namespace accel::rt {
std::vector<std::string>
missingFeatures(const std::vector<std::string> &features) {
  std::vector<std::string> missing;
  if (features.empty())
    return missing;
  std::set<std::string> here;
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (line.rfind("flags", 0) != 0)
      continue;
    std::istringstream words(line.substr(line.find(':') + 1));
    for (std::string word; words >> word;)
      here.insert(word);
    break;
  }
  for (const std::string &feature : features)
    if (!here.count(feature))
      missing.push_back(feature);
  return missing;
}

} // namespace accel::rt
