// Levels of x86-64 and the CPUs that have them.

#include "CpuTarget.h"

#include "llvm/ADT/StringMap.h"
#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/TargetParser/Host.h"
#include "llvm/TargetParser/Triple.h"
#include <memory>

using namespace mlir;
using namespace accel::cpu;

namespace {
/// A feature under LLVM's name and under that of /proc/cpuinfo.
struct Feature {
  StringRef llvm, cpuinfo;
};
} // namespace

// What LLVM may use for each level beyond the level before it.
static constexpr Feature kLevel3[] = {
    {"avx", "avx"},   {"avx2", "avx2"}, {"bmi", "bmi1"},  {"bmi2", "bmi2"},
    {"f16c", "f16c"}, {"fma", "fma"},   {"lzcnt", "abm"}, {"movbe", "movbe"}};
static constexpr Feature kLevel4[] = {{"avx512f", "avx512f"},
                                      {"avx512bw", "avx512bw"},
                                      {"avx512cd", "avx512cd"},
                                      {"avx512dq", "avx512dq"},
                                      {"avx512vl", "avx512vl"}};

static bool hasAll(ArrayRef<Feature> level,
                   llvm::function_ref<bool(StringRef)> has) {
  return llvm::all_of(
      level, [&](const Feature &feature) { return has(feature.llvm); });
}

FailureOr<CpuTarget>
accel::cpu::parseTarget(StringRef text,
                        llvm::function_ref<InFlightDiagnostic()> emitError) {
  LLVMInitializeX86TargetInfo();
  LLVMInitializeX86TargetMC();
  auto [kind, name] = text.split(':');
  if (kind != "cpu" || (name.empty() && text != "cpu")) {
    emitError() << "expected target 'cpu' or 'cpu:NAME', found '" << text
                << "'";
    return failure();
  }
  CpuTarget target;
  target.text = text.str();
  target.isHost = text == "cpu";
  bool isLevel3 = name == "x86-64-v3", isLevel4 = name == "x86-64-v4";
  std::string cpu =
      target.isHost ? llvm::sys::getHostCPUName().str() : name.str();
  if (target.isHost) {
    llvm::StringMap<bool> host = llvm::sys::getHostCPUFeatures();
    auto has = [&](StringRef feature) { return host.lookup(feature); };
    isLevel3 = hasAll(kLevel3, has);
    isLevel4 = isLevel3 && hasAll(kLevel4, has);
  } else if (!isLevel3 && !isLevel4) {
    llvm::Triple triple("x86_64-unknown-linux-gnu");
    std::string error;
    const llvm::Target *x86 = llvm::TargetRegistry::lookupTarget(triple, error);
    std::unique_ptr<llvm::MCSubtargetInfo> info(
        x86 ? x86->createMCSubtargetInfo(triple, "", "") : nullptr);
    if (!info || !info->isCPUStringValid(cpu)) {
      emitError() << "expected a CPU that LLVM knows, such as 'x86-64-v3', "
                     "found '"
                  << name << "'";
      return failure();
    }
    info.reset(x86->createMCSubtargetInfo(triple, cpu, ""));
    auto has = [&](StringRef feature) {
      return info->checkFeatures(("+" + feature).str());
    };
    isLevel3 = hasAll(kLevel3, has);
    isLevel4 = isLevel3 && hasAll(kLevel4, has);
  }
  if (!isLevel3 && !isLevel4) {
    emitError() << "expected a CPU with the features of x86-64-v3 (AVX2, FMA), "
                   "found '"
                << cpu << "'";
    return failure();
  }
  target.level = isLevel4 ? "x86-64-v4" : "x86-64-v3";
  target.vectorBits = isLevel4 ? 512 : 256;
  target.tune = cpu;
  for (const Feature &feature : kLevel3)
    target.features.push_back(feature.cpuinfo.str());
  if (isLevel4)
    for (const Feature &feature : kLevel4)
      target.features.push_back(feature.cpuinfo.str());
  llvm::sort(target.features);
  return target;
}
