// Looks keys up.

#include "Schema.h"

#include "lib/Names/Nearest.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace llvm;
using namespace accel::config;

StringRef accel::config::stringifyFate(Fate fate) {
  switch (fate) {
  case Fate::Done:
    return "done";
  case Fate::Noted:
    return "noted";
  case Fate::Later:
    return "later";
  }
  llvm_unreachable("unknown fate");
}

ArrayRef<const Section *> accel::config::sections() {
  static const Section *const kAll[] = {&kAccelerateSection,
                                        &kFsdpSection,
                                        &kParallelismSection,
                                        &kPluginSection,
                                        &kFp8Section,
                                        &kMegatronSection,
                                        &kDynamoSection,
                                        &kMpirunSection,
                                        &kHandlersSection,
                                        &kTransformerEngineSection,
                                        &kTorchaoSection,
                                        &kMsampSection,
                                        &kGradScalerSection,
                                        &kAutocastSection,
                                        &kDdpSection,
                                        &kPowerSGDSection,
                                        &kInitGroupSection,
                                        &kSageMakerSection,
                                        &kDeepSpeedSection,
                                        &kZeroSection,
                                        &kOffloadParamSection,
                                        &kOffloadOptimizerSection,
                                        &kLeafModuleSection,
                                        &kFp16Section,
                                        &kBf16Section,
                                        &kTorchAutocastSection,
                                        &kDeepSpeedMsampSection,
                                        &kOptimizerSection,
                                        &kOptimizerParamsSection,
                                        &kSchedulerSection,
                                        &kSchedulerParamsSection,
                                        &kActivationSection,
                                        &kAioSection,
                                        &kPipelineSection,
                                        &kTensorParallelSection,
                                        &kTensorParallelSizeSection,
                                        &kDataTypesSection,
                                        &kCheckpointSection,
                                        &kMegatronArgumentsSection,
                                        &kMegatronTrainingSection,
                                        &kMegatronModelSection,
                                        &kMegatronKernelsSection,
                                        &kMegatronRunSection};
  return kAll;
}

const Section &accel::config::getSection(StringRef name) {
  const Section *const *found = find_if(
      sections(), [&](const Section *one) { return one->name == name; });
  assert(found != sections().end() && "unknown section");
  return **found;
}

const Key *Section::find(StringRef name) const {
  for (const Section *part = this; part; part = part->rest)
    for (const Key &key : part->keys)
      if (key.name == name)
        return &key;
  if (prefix.empty() || name.starts_with(prefix))
    return nullptr;
  std::string prefixed = (prefix + name).str();
  for (const Key &key : keys)
    if (key.name == prefixed)
      return &key;
  return nullptr;
}

StringRef Section::nearest(StringRef name) const {
  std::string prefixed = prefix.empty() || name.starts_with(prefix)
                             ? name.str()
                             : (prefix + name).str();
  StringRef best;
  unsigned least = ~0u;
  for (const Section *part = this; part; part = part->rest)
    for (const Key &key : part->keys)
      for (StringRef said : {StringRef(prefixed), name}) {
        unsigned distance = nameDistance(said, key.name);
        if (distance < least && isNear(said, key.name)) {
          least = distance;
          best = key.name;
        }
      }
  return best;
}

const Section *accel::config::sectionOf(const Key &key) {
  size_t at = key.type.find('%');
  if (at == StringRef::npos)
    return nullptr;
  return &getSection(key.type.substr(at + 1).split('|').first);
}
