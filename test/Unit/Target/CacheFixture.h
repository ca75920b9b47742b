// A cache folder of a test's own, for the tests of the cache and of what is
// kept in it.

#ifndef ACCEL_TEST_UNIT_TARGET_CACHEFIXTURE_H
#define ACCEL_TEST_UNIT_TARGET_CACHEFIXTURE_H

#include "lib/Target/CPU/Cache.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <iterator>
#include <optional>
#include <string>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>

namespace accel::test {
namespace fs = std::filesystem;

inline std::string readAll(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// A file that only its owner may write.
inline void writeAll(const std::string &path, const std::string &bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
  fs::permissions(path, fs::perms(0600));
}

/// A folder that does not exist yet, in one that does not either, and what was
/// warned of.
class CacheFolder {
public:
  CacheFolder() {
    std::string name = (fs::temp_directory_path() / "acc-XXXXXX").string();
    root = mkdtemp(name.data());
    path = root + "/home/acc";
  }
  ~CacheFolder() { fs::remove_all(root); }

  cpu::Cache::Warn warn() {
    return [this](const llvm::Twine &text) { warnings.push_back(text.str()); };
  }
  std::optional<std::string> find(const std::string &inputs) {
    return cpu::Cache(path, "thing", "things", warn()).find(inputs);
  }
  void insert(const std::string &inputs, const std::string &content) {
    cpu::Cache(path, "thing", "things", warn()).insert(inputs, content);
  }
  std::vector<std::string> files() const {
    std::vector<std::string> found;
    for (const auto &entry : fs::directory_iterator(path))
      found.push_back(entry.path().string());
    return found;
  }

  std::string root, path;
  std::vector<std::string> warnings;
};

} // namespace accel::test

#endif // ACCEL_TEST_UNIT_TARGET_CACHEFIXTURE_H
