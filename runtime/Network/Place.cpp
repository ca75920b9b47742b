// Machines are told apart by the name of the host, the boot of its kernel and
// the table of processes: containers of one host that cannot see each other's
// processes are machines of their own.

#include "Network/Network.h"

#include <cstdio>
#include <cstdlib>
#include <sched.h>
#include <unistd.h>

namespace accel::rt {

static std::string readLine(const char *path) {
  std::string text;
  if (FILE *file = std::fopen(path, "r")) {
    char line[128];
    if (std::fgets(line, sizeof line, file))
      text = line;
    std::fclose(file);
  }
  return text;
}

ProcessPlace placeOfThisProcess() {
  char host[256] = {}, table[128] = {};
  if (gethostname(host, sizeof host - 1) != 0)
    host[0] = '\0';
  if (readlink("/proc/self/ns/pid", table, sizeof table - 1) < 0)
    table[0] = '\0';
  ProcessPlace place;
  place.host = *host ? host : "a host without a name";
  const char *given = std::getenv("ACCEL_MACHINE");
  if (given && *given)
    place.host = given;
  place.machine =
      place.host + "|" + readLine("/proc/sys/kernel/random/boot_id") + table;
  cpu_set_t cores;
  if (sched_getaffinity(0, sizeof cores, &cores) == 0)
    place.cores.assign(reinterpret_cast<const char *>(&cores), sizeof cores);
  return place;
}

int64_t countCores(const std::string &bits) {
  int64_t count = 0;
  for (char byte : bits)
    count += __builtin_popcount(static_cast<unsigned char>(byte));
  return count;
}

} // namespace accel::rt
