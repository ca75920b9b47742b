// accel-mutate-executable FILE OUT SEED: writes a copy of an executable in
// which one field of its header says something else, with a checksum that fits,
// and prints which. A field's name is drawn first, then one of its places, then
// what becomes of it: rare fields get their turn. With drop=K for SEED, the
// copy lacks the command K of its bodies, and what is printed is its kind; if
// there are no more than K, nothing is. With overlap=KIND:K scratch of a
// command of that kind is put into a buffer that lies where another view of it
// is: the K-th way to do so, if there are as many.

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

/// The views of a command, whatever they are called.
static void collectViews(Json &json, std::vector<Json *> &views) {
  if (json.is_object() && json.contains("buffer") && json.contains("dtype"))
    views.push_back(&json);
  else if (json.is_structured())
    for (Json &each : json)
      collectViews(each, views);
}

/// Puts a view where another one of its command is, one of `kind`, which is
/// returned.
static std::string overlap(Json &plan, const std::string &kind,
                           uint64_t index) {
  auto number = [](const Json &object, const char *key) {
    return object.value(key, int64_t(0));
  };
  for (Json &program : plan["programs"]) {
    Json &buffers = program["buffers"];
    for (Json &body : program["bodies"])
      for (Json &command : body["commands"]) {
        if (command["kind"] != kind)
          continue;
        std::vector<Json *> views;
        for (auto &[key, value] : command.items())
          if (key != "releases")
            collectViews(value, views);
        for (Json *view : views)
          for (Json *other : views) {
            const Json &own = buffers[number(*view, "buffer")],
                       &at = buffers[number(*other, "buffer")];
            int64_t begin = number(at, "offset"),
                    end = begin + number(at, "bytes");
            for (size_t i = 0; i < buffers.size() && other != view; ++i) {
              const Json &one = buffers[i];
              int64_t place = number(one, "offset");
              // A value in the place of another one is another program; room
              // that is overwritten at will is not.
              bool fits = one["space"] == at["space"] &&
                          own["role"] == "scratch" &&
                          one["role"] == "scratch" && place < end &&
                          place + number(own, "bytes") > begin &&
                          number(one, "bytes") >= number(own, "bytes");
              if (!fits || static_cast<int64_t>(i) == number(*view, "buffer") ||
                  index-- != 0)
                continue;
              (*view)["buffer"] = i;
              return kind;
            }
          }
      }
  }
  return "";
}

int main(int argc, char **argv) {
  if (argc != 4) {
    std::fprintf(stderr, "usage: accel-mutate-executable FILE OUT "
                         "SEED|drop=K|overlap=KIND:K\n");
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
  bool drops = change.rfind("drop=", 0) == 0;
  if (drops || change.rfind("overlap=", 0) == 0) {
    size_t from = change.find('=') + 1, colon = change.find(':');
    uint64_t index = std::strtoull(
        &change[colon == std::string::npos ? from : colon + 1], nullptr, 10);
    told =
        drops ? dropCommand(json["accx"], index)
              : overlap(json["accx"], change.substr(from, colon - from), index);
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
