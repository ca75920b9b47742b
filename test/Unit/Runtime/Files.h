// Whole files as text, for tests that look at bytes or change them.

#ifndef ACCEL_TEST_UNIT_RUNTIME_FILES_H
#define ACCEL_TEST_UNIT_RUNTIME_FILES_H

#include <fstream>
#include <iterator>
#include <string>

namespace accel::rt::test {

inline std::string slurp(const std::string &path) {
  std::ifstream stream(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(stream), {});
}

inline void spill(const std::string &path, const std::string &text) {
  std::ofstream(path, std::ios::binary) << text;
}

} // namespace accel::rt::test

#endif // ACCEL_TEST_UNIT_RUNTIME_FILES_H
