// accel-mutate-executable FILE OUT SEED: writes a copy of an executable in
// which one field of its header says something else, with a checksum that fits,
// and prints which. A field's name is drawn first, then one of its places, then
// what becomes of it: rare fields get their turn.

#include "MutateHeader.h"
#include "accel-rt/PlanFormat.h"

#include <cstdio>
#include <cstring>
#include <fstream>

int main(int argc, char **argv) {
  if (argc != 4) {
    std::fprintf(stderr, "usage: accel-mutate-executable FILE OUT SEED\n");
    return 2;
  }
  std::ifstream stream(argv[1], std::ios::binary);
  std::string text(std::istreambuf_iterator<char>(stream), {});
  uint64_t length = 0;
  std::memcpy(&length, text.data(), 8);
  auto align = [](uint64_t n) { return (n + 4095) / 4096 * 4096; };
  std::string payload = text.substr(align(length + 16));
  auto json = accel::test::HeaderMutator::Json::parse(text.substr(8, length));
  accel::test::HeaderMutator mutator(std::strtoull(argv[3], nullptr, 10));
  std::string told;
  mutator.change(json["accx"], &told);
  std::printf("%s\n", told.c_str());
  std::string header = json.dump();
  uint64_t size = header.size(),
           hash = accel::rt::hashBytes(header.data(), size);
  std::string result(reinterpret_cast<char *>(&size), 8);
  result += header;
  result.append(reinterpret_cast<char *>(&hash), 8);
  result.resize(align(result.size()));
  std::ofstream(argv[2], std::ios::binary) << result << payload;
  return 0;
}
