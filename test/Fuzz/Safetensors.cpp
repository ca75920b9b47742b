// The reader of safetensors files: what it takes can be read whole, and
// parameters that an exporter folded away are copied from it into a file of
// saved weights.

#include "Data/Safetensors.h"
#include "ReadWhole.h"
#include "State/SavedWeights.h"
#include "TinyExecutable.h"

using namespace accel;
using namespace accel::fuzz;

namespace {

/// A program of which two parameters are in another file; `bias` has a shape.
struct Folded {
  rt::test::TemporaryFolder folder;
  std::unique_ptr<rt::ExecutableFile> file;
  rt::Weights weights;

  Folded() {
    rt::Executable executable = rt::test::tinyExecutable();
    executable.folded = {{"bias", std::vector<int64_t>{3}}, {"weight", {}}};
    std::string path = folder / "m.accx";
    require(rt::writeExecutableFile(executable, rt::test::tinySections(), path)
                    .ok() &&
                rt::ExecutableFile::open(path, file).ok() &&
                weights.open(*file, {}).ok(),
            "the tiny executable is written and read");
  }
};

} // namespace

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static MemoryFile file("f.safetensors");
  static Folded program;
  file.write(textOf(data, size));
  std::vector<rt::SafetensorsEntry> entries;
  uint64_t start = 0;
  rt::Status status =
      rt::readSafetensors(file.descriptor(), "f.safetensors", entries, start);
  require(status.ok() || !status.message().empty(), "an error says something");
  if (!status.ok())
    return 0;
  bool isWanted = false;
  for (const rt::SafetensorsEntry &entry : entries) {
    isWanted |= entry.name == "weight";
    readWhole({file.descriptor(), "f.safetensors", start + entry.begin,
               entry.dtype, entry.shape, rt::rowMajorStrides(entry.shape)});
  }
  // It makes a file, so only where there is something to copy.
  if (!isWanted)
    return 0;
  rt::SavedWeights saved;
  status = saved.create(*program.file, program.weights,
                        program.folder / "saved.safetensors", file.path(),
                        /*averages=*/false, /*type=*/std::nullopt, {});
  require(status.ok() || !status.message().empty(), "an error says something");
  return 0;
}
