// Runs an executable twice through the installed runtime, as acc-run would, and
// prints how many ranks it had.

#include "accel-rt/Runtime.h"
#include "accel-rt/Version.h"

#include <cstdio>

int main(int argc, char **argv) {
  if (argc != 4)
    return 2;
  accel::rt::RunOptions options;
  options.executable = argv[1];
  options.inputs = argv[2];
  options.outputs = argv[3];
  options.repeats = 2;
  accel::rt::RunResult result;
  accel::rt::Status status = accel::rt::runExecutable(options, result);
  if (!status.ok()) {
    std::fprintf(stderr, "%s\n", status.message().c_str());
    return 1;
  }
  std::printf("acc %s: %d calls on %d ranks\n", accel::rt::version().c_str(),
              int(result.seconds.size()), int(result.ranks));
}
