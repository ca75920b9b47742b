// Every key of the config files we read, one row each: its type, its default,
// what becomes of it here, and the trap it holds where it is read today. The
// rows stand in lib/Config/*Keys.cpp; docs/ConfigKeys.md is printed from them.

#ifndef ACCEL_LIB_CONFIG_SCHEMA_H
#define ACCEL_LIB_CONFIG_SCHEMA_H

#include "Scalar.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace accel::config {

/// What becomes of a key.
enum class Fate {
  Done,  ///< it decides something of the program
  Noted, ///< accepted; the note says what takes its place
  Later, ///< refused as "not supported yet", save for the values `harmless`
};

/// "done", "noted" or "later".
llvm::StringRef stringifyFate(Fate fate);

struct Key {
  llvm::StringLiteral name;
  /// Alternatives separated by "|":
  ///   bool     true or false; `flag` takes the words in quotes too
  ///   switch   an argument without a value; of --set true or false
  ///   int>=N   an integer; `count>=N` takes integral floats (5e8) too
  ///   number>=N, number>0, number   an integer or a float
  ///   string, list, mapping, null, auto, and %SECTION, a mapping of its own
  ///   A,B,C    one of these words; `~A,B,C` in any letter case
  llvm::StringLiteral type;
  llvm::StringLiteral fallback; ///< what is documented where it is absent
  Fate fate;
  /// Values that are taken, separated by "|"; empty: all (none, where `Later`).
  /// A mapping is harmless if it is empty or says `enabled: false`.
  llvm::StringLiteral harmless;
  /// Done: what it becomes; Noted: what replaces it; Later: what is missing.
  llvm::StringLiteral note;
  /// How it goes wrong today, in Accelerate or DeepSpeed; may be empty.
  llvm::StringLiteral trap;
  /// The setting that its value is (lib/Config/Settings.cpp); empty where the
  /// value stands for another one, or decides by itself (`claimAccelerate`,
  /// `claimDeepSpeed`).
  llvm::StringLiteral setting = "";
  /// The setting that decides in the key's place where `--set` says it, so that
  /// no value of the key is refused: `setting`, where it has one.
  llvm::StringLiteral beatenBy = "";

  /// The same key, done or noted, of which only these values are taken.
  constexpr Key only(llvm::StringLiteral values) const {
    assert(fate != Fate::Later && "what is refused has exceptions, `unless`");
    return {name, type, fallback, fate, values, note, trap, setting, beatenBy};
  }
  /// The same key, refused, of which these values are taken all the same.
  constexpr Key unless(llvm::StringLiteral values) const {
    assert(fate == Fate::Later && "only what is refused has exceptions");
    return {name, type, fallback, fate, values, note, trap, setting, beatenBy};
  }
  /// The same key, done, whose value is that of a setting.
  constexpr Key sets(llvm::StringLiteral name) const {
    assert(fate == Fate::Done && "only what is done sets anything");
    return {this->name, type, fallback, fate, harmless, note, trap, name, name};
  }
  /// The same key, whose value stands for another one of that setting.
  constexpr Key orSet(llvm::StringLiteral name) const {
    return {this->name, type, fallback, fate, harmless,
            note,       trap, setting,  name};
  }
  /// The same key with its trap.
  constexpr Key beware(llvm::StringLiteral text) const {
    return {name, type, fallback, fate,    harmless,
            note, text, setting,  beatenBy};
  }
};

/// A key that decides something: `meaning` is what it becomes.
constexpr Key done(llvm::StringLiteral name, llvm::StringLiteral type,
                   llvm::StringLiteral fallback, llvm::StringLiteral meaning) {
  return {name, type, fallback, Fate::Done, "", meaning, ""};
}
/// A key that is accepted and decides nothing: `why` is what takes its place.
constexpr Key noted(llvm::StringLiteral name, llvm::StringLiteral type,
                    llvm::StringLiteral fallback, llvm::StringLiteral why) {
  return {name, type, fallback, Fate::Noted, "", why, ""};
}
/// A key that is refused as "not supported yet": `what` is missing.
constexpr Key later(llvm::StringLiteral name, llvm::StringLiteral type,
                    llvm::StringLiteral fallback, llvm::StringLiteral what) {
  return {name, type, fallback, Fate::Later, "", what, ""};
}

/// The keys of one mapping.
struct Section {
  llvm::StringLiteral name;  ///< "accelerate", "fsdp_config", …
  llvm::StringLiteral title; ///< for the documentation
  /// What Accelerate puts before a key that has it not ("fsdp_"), so that both
  /// spellings are legal; may be empty.
  llvm::StringLiteral prefix;
  llvm::ArrayRef<Key> keys;
  /// A section whose keys stand in the same mapping, printed as a table of its
  /// own; null for none.
  const Section *rest = nullptr;

  /// The key called `name`, prefixed or not; null if there is none.
  const Key *find(llvm::StringRef name) const;
  /// The legal key nearest to `name`, prefixed or not; empty if none is near.
  llvm::StringRef nearest(llvm::StringRef name) const;
};

/// All sections; "accelerate", "deepspeed", "kwargs_handlers" and "megatron"
/// are the roots of files.
llvm::ArrayRef<const Section *> sections();
/// Requires a section of that name.
const Section &getSection(llvm::StringRef name);

/// The value of `node` in the one spelling that the rest of the library reads
/// ("true", "4", "0.9,0.999", "FULL_SHARD", "auto", "null"), or an error at its
/// place if it is not of the type of `key`; `path` is what the message calls
/// the key. Mappings come back as "{}" if empty or not enabled, else as "{…}".
llvm::Expected<std::string> checkType(const Key &key, llvm::StringRef path,
                                      const Node &node, Syntax syntax);

/// The section that a key's value is a mapping of; null if it has none.
const Section *sectionOf(const Key &key);

// The sections, each in a file of its own.
extern const Section kAccelerateSection, kSageMakerSection, kDynamoSection,
    kMpirunSection, kFsdpSection, kParallelismSection, kFp8Section,
    kTransformerEngineSection, kTorchaoSection, kMsampSection,
    kDeepSpeedMsampSection, kMegatronSection, kPluginSection;
extern const Section kHandlersSection, kGradScalerSection, kAutocastSection,
    kDdpSection, kPowerSGDSection, kInitGroupSection, kMegatronArgumentsSection,
    kMegatronTrainingSection, kMegatronModelSection, kMegatronKernelsSection,
    kMegatronRunSection;
extern const Section kDeepSpeedSection, kZeroSection, kOffloadParamSection,
    kOffloadOptimizerSection, kLeafModuleSection, kFp16Section, kBf16Section,
    kTorchAutocastSection, kOptimizerSection, kOptimizerParamsSection,
    kSchedulerSection, kSchedulerParamsSection, kActivationSection, kAioSection,
    kPipelineSection, kTensorParallelSection, kTensorParallelSizeSection,
    kDataTypesSection, kCheckpointSection;

} // namespace accel::config

#endif // ACCEL_LIB_CONFIG_SCHEMA_H
