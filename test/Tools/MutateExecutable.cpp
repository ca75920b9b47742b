// accel-mutate-executable FILE OUT SEED: writes a copy of an executable in
// which one field of its header says something else, with a checksum that fits,
// and prints which. A field's name is drawn first, then one of its places, then
// what becomes of it: rare fields get their turn. With drop=K for SEED, the
// copy lacks the command K of its bodies, and what is printed is its kind; if
// there are no more than K, nothing is.

#include "MutateHeader.h"
#include "accel-rt/PlanFormat.h"

#include <cstdio>
#include <cstring>
#include <fstream>

using Json = accel::test::HeaderMutator::Json;

/// Takes a command out; returns its kind.
static std::string dropCommand(Json &plan, uint64_t index) {
  for (Json &program : plan["programs"])
    for (Json &body : program["bodies"]) {
      Json &commands = body["commands"];
      if (index < commands.size()) {
        std::string kind = commands[index]["kind"];
        commands.erase(index);
        return kind;
      }
      index -= commands.size();
    }
  return "";
}

int main(int argc, char **argv) {
  if (argc != 4) {
    std::fprintf(stderr,
                 "usage: accel-mutate-executable FILE OUT SEED|drop=K\n");
    return 2;
  }
  std::ifstream stream(argv[1], std::ios::binary);
  std::string text(std::istreambuf_iterator<char>(stream), {});
  uint64_t length = 0;
  std::memcpy(&length, text.data(), 8);
  auto align = [](uint64_t n) { return (n + 4095) / 4096 * 4096; };
  std::string payload = text.substr(align(length + 16));
  auto json = Json::parse(text.substr(8, length));
  std::string told, change = argv[3];
  if (change.rfind("drop=", 0) == 0) {
    told = dropCommand(json["accx"], std::strtoull(argv[3] + 5, nullptr, 10));
    if (told.empty())
      return 0;
  } else {
    accel::test::HeaderMutator mutator(std::strtoull(argv[3], nullptr, 10));
    mutator.change(json["accx"], &told);
  }
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
