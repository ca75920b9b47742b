// Checkpoints: a manifest and the headers of its two files, each after the last
// by a byte 0x1e. Hashes are mended, so that what is read is not refused for
// them.

#include "ReadWhole.h"
#include "State/Resume.h"
#include "TinyTraining.h"

using namespace accel;
using namespace accel::fuzz;

namespace {

/// A folder whose files are in memory.
struct Checkpoint {
  rt::test::TemporaryFolder folder;
  MemoryFile manifest{"manifest"}, model{"model"}, optimizer{"optimizer"};

  Checkpoint() {
    auto link = [&](const MemoryFile &file, const char *name) {
      std::filesystem::create_symlink(file.path(), folder / name);
    };
    link(manifest, rt::kManifestFile);
    link(model, rt::kCheckpointFiles[rt::kModel]);
    link(optimizer, rt::kCheckpointFiles[rt::kOptimizer]);
  }
};

std::string hexOf(uint64_t value) {
  char text[20];
  std::snprintf(text, sizeof text, "%016llx",
                static_cast<unsigned long long>(value));
  return text;
}

/// Puts `hash` behind the last `key` of the text.
void mend(std::string &text, const std::string &key, uint64_t hash) {
  size_t at = text.rfind(key);
  if (at != std::string::npos && at + key.size() + 16 <= text.size())
    text.replace(at + key.size(), 16, hexOf(hash));
}

/// The file with a header of that JSON, and 256 bytes of elements; `mended`
/// gets the header's hash.
std::string withHeader(std::string_view json, uint64_t &hash) {
  uint64_t length = json.size();
  std::string text(reinterpret_cast<const char *>(&length), 8);
  text += json;
  hash = rt::hashBytes(text.data(), text.size());
  return text + std::string(256, '\1');
}

} // namespace

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static Checkpoint checkpoint;
  static const rt::Executable program = rt::test::tinyTraining();
  std::string_view rest = textOf(data, size), parts[3];
  for (std::string_view &part : parts) {
    part = rest.substr(0, rest.find('\x1e'));
    rest.remove_prefix(std::min(part.size() + 1, rest.size()));
  }
  uint64_t hashes[2];
  checkpoint.model.write(withHeader(parts[1], hashes[0]));
  checkpoint.optimizer.write(withHeader(parts[2], hashes[1]));
  std::string text(parts[0]);
  mend(text, "\"model.safetensors\": \"", hashes[0]);
  mend(text, "\"optimizer.safetensors\": \"", hashes[1]);
  std::string seal = ",\n \"hash\": \"";
  size_t at = text.rfind(seal);
  if (at != std::string::npos)
    mend(text, seal, rt::hashBytes(text.data(), at + seal.size()));
  checkpoint.manifest.write(text);

  rt::Resume resume;
  auto hear = [](const std::string &) {};
  rt::Status status = resume.open(checkpoint.folder.path, program,
                                  rt::Resume::Wanted::All, hear);
  require(status.ok() || !status.message().empty(), "an error says something");
  if (!status.ok())
    return 0;
  require(resume.step() >= 0 && resume.step() <= rt::kMaxSteps,
          "a checkpoint's step can be counted on from");
  for (const rt::StatePlan &state : program.states)
    if (const rt::SavedState *found = resume.find(state.name))
      readWhole(found->range);
  rt::DataCursor cursor;
  cursor.hash = 1;
  (void)resume.checkData(&cursor, hear);
  return 0;
}
