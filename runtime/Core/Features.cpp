// Whether this machine has the CPU features that a file was compiled for.

#include "accel-rt/Runtime.h"

#include <cctype>
#include <fstream>
#include <set>
#include <sstream>

namespace accel::rt {
namespace {

/// LLVM's names where /proc/cpuinfo has quite another one. An empty name: what
/// every x86-64 has, or what the kernel does not list and no kernel code uses.
struct Alias {
  const char *llvm, *linux;
};
constexpr Alias kAliases[] = {{"64bit", "lm"},
                              {"crc32", "sse4_2"},
                              {"cx8", "cx8"},
                              {"invpcid", "invpcid"},
                              {"lzcnt", "abm"},
                              {"mwaitx", "mwaitx"},
                              {"pclmul", "pclmulqdq"},
                              {"prfchw", "3dnowprefetch"},
                              {"rdrnd", "rdrand"},
                              {"sahf", "lahf_lm"},
                              {"sha", "sha_ni"},
                              {"sse3", "pni"},
                              {"x87", "fpu"},
                              {"shstk", ""},
                              {"ptwrite", ""},
                              {"rdpru", ""},
                              {"prefetchi", ""},
                              {"evex512", "avx512f"},
                              {"hreset", ""},
                              {"kl", ""},
                              {"widekl", ""},
                              {"sgx", ""},
                              {"lwp", ""},
                              {"uintr", ""},
                              {"pconfig", ""},
                              {"wbnoinvd", ""},
                              {"clzero", ""},
                              {"usermsr", ""},
                              {"cmpccxadd", ""},
                              {"tsxldtrk", ""},
                              {"rtm", ""},
                              {"xsaves", ""},
                              {"invlpgb", ""}};

/// Letters and digits alone: "avx512-bf16" and "avx512_bf16" are one name.
std::string plain(const std::string &name) {
  std::string result;
  for (char c : name)
    if (std::isalnum(static_cast<unsigned char>(c)))
      result += c;
  return result;
}

} // namespace

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
      here.insert(plain(word));
    break;
  }
  for (const std::string &feature : features) {
    std::string name = plain(feature);
    for (const Alias &alias : kAliases)
      if (name == alias.llvm)
        name = plain(alias.linux);
    if (!name.empty() && !here.count(name))
      missing.push_back(feature);
  }
  return missing;
}

} // namespace accel::rt
