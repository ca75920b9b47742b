// Executables: the JSON of a header, a NUL, and the bytes of the sections.
// Hashes of sections and the checksum are mended, and kernels are signed anew,
// so that what is left to refuse is what the program would do. What is taken is
// loaded and run on a device without kernels (GuardedDevice.h).

#include "Control/SharedControl.h"
#include "Execute/Executor.h"
#include "Format/Json.h"
#include "GuardedDevice.h"
#include "Run/Rank.h"
#include "TinyExecutable.h"

#include "Data/OpenTensor.h"

#include <fstream>

using namespace accel;
using namespace accel::fuzz;

namespace {

/// More than seeds have; arenas are made of memory that is written to.
constexpr int64_t kMostArenaBytes = 1 << 21;
/// Turns of a loop: more are the same again, and take as long as they are many.
constexpr int64_t kMostTurns = 16;

/// Inputs `x` of the seeds.
struct InputFolder {
  rt::test::TemporaryFolder folder;
  InputFolder() {
    std::ofstream(folder / "x.npy", std::ios::binary)
        << rt::npyHeader(rt::DType::F32, {4}) << std::string(16, '\0');
  }
};

std::string fileOf(const std::string &header, std::string_view payload) {
  uint64_t length = header.size(),
           hash = rt::hashBytes(header.data(), header.size());
  std::string text(reinterpret_cast<char *>(&length), 8);
  text += header;
  text.append(reinterpret_cast<char *>(&hash), 8);
  text.resize((text.size() + rt::kSectionAlignment - 1) /
              rt::kSectionAlignment * rt::kSectionAlignment);
  return text.append(payload);
}

/// Gives sections the hashes that they have, and commands the kernels that
/// they call.
void mend(rt::Executable &executable, std::string_view payload) {
  for (rt::Section &section : executable.sections)
    if (section.offset <= payload.size() &&
        section.bytes <= payload.size() - section.offset)
      section.hash =
          rt::hashBytes(payload.data() + section.offset, section.bytes);
  executable.kernels.clear();
  for (const rt::Program &program : executable.programs)
    for (const rt::Body &body : program.bodies)
      for (const rt::Command &command : body.commands)
        if (auto kernel = rt::kernelSignature(program, command))
          executable.kernels.push_back(*kernel);
}

rt::Status runRank(const rt::ExecutableFile &file, const rt::Inputs &inputs,
                   const rt::Weights &weights, int64_t rank) {
  const rt::Executable &plan = file.plan();
  const rt::Program *program = rt::programOf(plan, rank);
  if (!program)
    return rt::Status::error("no program");
  int64_t bytes = 0;
  for (const rt::ArenaPlan &arena : program->arenas)
    if (arena.bytes > kMostArenaBytes ||
        (bytes += arena.bytes) > kMostArenaBytes)
      return rt::Status::error("too large to be tried");
  for (const rt::Entry &entry : program->entries)
    for (const rt::Loop &loop : entry.loops)
      if (loop.trips > kMostTurns)
        return rt::Status::error("too long to be tried");
  Arenas arenas;
  GuardedDevice device(arenas);
  GuardedComm comm(arenas);
  std::vector<uint64_t> hashes(plan.states.size() + 1);
  rt::SharedControl center;
  rt::ControlSize size;
  size.ranks = plan.numRanks();
  ACCEL_RT_RETURN_IF_ERROR(center.create(size, /*spin=*/50));
  std::unique_ptr<rt::ControlPlane> control = center.makePlane(rank);
  rt::RankControl &self = control->self();
  if (plan.numRanks() > 1)
    ACCEL_RT_RETURN_IF_ERROR(weights.checkSplit(
        plan, 0,
        [&](int64_t other, size_t state, uint64_t hash) {
          hashes[other == rank ? state : plan.states.size()] = hash;
        },
        self.progress));
  rt::InputOutput io{plan, &inputs, &weights, hashes.data(), nullptr, nullptr};
  io.memory = &device;
  // A small room, so that pieces come in parts.
  io.staging.resize(64);
  rt::Coordinates coordinates = rt::Coordinates::of(plan.mesh, rank);
  auto transfer = [&](const rt::Command &command, rt::Work &work) {
    return io.prepare(command, coordinates, self, work);
  };
  std::vector<rt::Executor::Engine> engines;
  for (const rt::Body &body : program->bodies)
    engines.push_back({body.engine, &device});
  rt::Executor executor(*program, coordinates,
                        {engines, &comm, transfer, control.get()},
                        /*poison=*/true);
  ACCEL_RT_RETURN_IF_ERROR(executor.prepare(file));
  ACCEL_RT_RETURN_IF_ERROR(executor.run("load"));
  for (const rt::Entry &entry : program->entries)
    if (entry.name != "load")
      ACCEL_RT_RETURN_IF_ERROR(executor.run(entry.name));
  require(executor.touchedBytes() <= arenas.bytes(),
          "no byte behind the arenas is named");
  return rt::Status();
}

/// Opens the file and does what acc-run does before it forks, and then as each
/// of its first and last ranks.
void run(const std::string &text) {
  static MemoryFile memory("m.accx");
  static InputFolder folder;
  memory.write(text);
  std::unique_ptr<rt::ExecutableFile> file;
  rt::Status status = rt::ExecutableFile::open(memory.path(), file);
  require(status.ok() || !status.message().empty(), "an error says something");
  if (!status.ok())
    return;
  const rt::Executable &plan = file->plan();
  for (const rt::Section &section : plan.sections) {
    std::vector<char> bytes(section.bytes);
    (void)file->read(section, bytes.data());
  }
  rt::Weights weights;
  rt::Inputs inputs;
  if (!weights.open(*file, {}).ok() ||
      !inputs.open(plan, plan.inputs, folder.folder.path, nullptr).ok())
    return;
  for (int64_t rank : {int64_t(0), plan.numRanks() - 1})
    (void)runRank(*file, inputs, weights, rank);
}

} // namespace

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  std::string_view text = textOf(data, size);
  std::string header(text.substr(0, text.find('\0')));
  text.remove_prefix(std::min(text.size(), header.size() + 1));
  rt::Executable executable;
  rt::Status status = rt::format::fromJson(header, executable);
  require(status.ok() || !status.message().empty(), "an error says something");
  if (!status.ok())
    return 0;
  mend(executable, text);
  run(fileOf(rt::format::toJson(executable), text));
  return 0;
}
