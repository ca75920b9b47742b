// What a file's code needs of the machine, by engine: the words of the device
// that the file was made for stand as they are, those of another engine's code
// behind its name ("cpu:avx2").

#ifndef ACCEL_RT_FEATUREFORMAT_H
#define ACCEL_RT_FEATUREFORMAT_H

#include "accel-rt/PlanFormat.h"

namespace accel::rt {

/// As Executable::features has a word of the code of `engine`.
inline std::string featureOf(const std::string &engine,
                             const std::string &word) {
  return engine + ":" + word;
}

/// Whether the file was made for the device that is called as `engine` is.
inline bool isMadeFor(const Executable &plan, const std::string &engine) {
  return plan.target.substr(0, plan.target.find(':')) == engine;
}

/// The words of the code of `engine`, as its device knows them.
inline std::vector<std::string> featuresOf(const Executable &plan,
                                           const std::string &engine) {
  const std::string prefix = featureOf(engine, "");
  std::vector<std::string> words;
  for (const std::string &feature : plan.features)
    if (feature.rfind(prefix, 0) == 0)
      words.push_back(feature.substr(prefix.size()));
    else if (feature.find(':') == std::string::npos && isMadeFor(plan, engine))
      words.push_back(feature);
  return words;
}

} // namespace accel::rt

#endif // ACCEL_RT_FEATUREFORMAT_H
