// Finding and loading the plug-in.

#include "Network/MpiNetwork.h"

#include <dlfcn.h>
#include <unistd.h>

namespace accel::rt {

/// The folder of this program, with its slash.
static std::string folderOfProgram() {
  char path[4096];
  ssize_t length = readlink("/proc/self/exe", path, sizeof path);
  std::string text(path, length > 0 ? static_cast<size_t>(length) : 0);
  return text.substr(0, text.rfind('/') + 1);
}

Status joinMpi(std::unique_ptr<Network> &network) {
  std::string here = folderOfProgram(), path, why;
  void *library = nullptr;
  // Installed, what only acc loads is in a folder of its own.
  for (const std::string &folder :
       {here, here + "../lib/", here + "../lib/acc/"}) {
    path = folder + kMpiPlugin;
    if (access(path.c_str(), F_OK) != 0)
      continue;
    // Global, because MPI loads parts of its own that look for it.
    library = dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL);
    if (library)
      break;
    why = dlerror();
  }
  if (!library && why.empty())
    return Status::error(
        "expected " + std::string(kMpiPlugin) + " beside acc-run or in " +
        here +
        "../lib for --comm=mpi, found none: acc was built without MPI; "
        "install libopenmpi-dev and build again (scripts/setup does)");
  if (!library)
    return Status::error("cannot load " + path + " for --comm=mpi: " + why +
                         "; where MPI is missing, install openmpi-bin");
  auto make = reinterpret_cast<MakeMpiNetwork>(dlsym(library, kMakeMpiNetwork));
  if (!make)
    return Status::error("expected " + path +
                         " of the same build as acc-run, found another");
  char error[512] = {};
  network.reset(make(error, sizeof error));
  return network ? Status()
                 : Status::error(std::string("cannot start MPI: ") + error);
}

} // namespace accel::rt
