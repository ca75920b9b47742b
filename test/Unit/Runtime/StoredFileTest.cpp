// The file that space nvme is: every byte goes where it should and no other
// changes, whatever it is moved in; what is wrong with the disk is said at
// load; and a run whose device the host cannot reach into moves the same bytes.

#include "Storage/StoredFile.h"
#include "Device/Null/NullDevice.h"
#include "Files.h"
#include "Format/Layout.h"
#include "RunFixture.h"
#include "Storage/StoredArenas.h"
#include "WalledDevice.h"

#include <cstring>
#include <random>

using namespace accel::rt;
using namespace accel::rt::test;
using testing::HasSubstr;

namespace {

struct Layout {
  int64_t blockBytes, queueDepth;
};

class Stored : public testing::TestWithParam<Layout> {
protected:
  ArenaPlan arena(int64_t bytes) const {
    return {
        "nvme", bytes, 4096, 0,
        StoragePlan{folder.path, GetParam().blockBytes, GetParam().queueDepth}};
  }
  TemporaryFolder folder;
};

TEST_P(Stored, KeepsEveryByte) {
  // Buffers that end within sectors, and within blocks.
  const std::vector<StoredFile::Named> buffers = {
      {0, 5000, "a"}, {8192, 8193, "b"}, {12288, 77777, "c"}};
  std::unique_ptr<StoredFile> file;
  std::atomic<uint64_t> progress{0}, read{0}, written{0};
  Status opened =
      StoredFile::open(arena(77777), buffers, "cpu", &progress, file);
  ASSERT_TRUE(opened.ok()) << opened.message();
  EXPECT_TRUE(std::filesystem::is_empty(folder.path));
  std::vector<char> model(77777), host(77777 + 4096);
  std::mt19937 random(1);
  uint64_t moved[2] = {};
  for (int turn = 0; turn < 400; ++turn) {
    const StoredFile::Named &buffer = buffers[random() % buffers.size()];
    uint64_t size = buffer.end - buffer.offset,
             from = random() % 3 ? random() % size : 0,
             bytes = random() % 3 ? random() % (size - from) + 1 : size - from;
    char *memory = host.data() + random() % 4096;
    bool writes = random() % 2;
    moved[writes] += bytes;
    if (writes) {
      for (uint64_t i = 0; i < bytes; ++i)
        memory[i] = static_cast<char>(random());
      std::memcpy(model.data() + buffer.offset + from, memory, bytes);
    }
    StoredFile::Beside beside{memory, nullptr, {}};
    Status status =
        writes ? file->write(buffer.offset + from, bytes, beside, &written)
               : file->read(buffer.offset + from, bytes, beside, &read);
    ASSERT_TRUE(status.ok()) << status.message();
    ASSERT_EQ(std::memcmp(memory, model.data() + buffer.offset + from, bytes),
              0)
        << turn;
  }
  EXPECT_EQ(read, moved[0]);
  EXPECT_EQ(written, moved[1]);
  EXPECT_GE(progress, 400u);
  for (const StoredFile::Named &buffer : buffers) {
    ASSERT_TRUE(file->read(buffer.offset, buffer.end - buffer.offset,
                           {host.data(), nullptr, {}})
                    .ok());
    EXPECT_EQ(std::memcmp(host.data(), model.data() + buffer.offset,
                          buffer.end - buffer.offset),
              0);
  }
}

/// Rows go there and back as they do in memory.
TEST_P(Stored, MovesRows) {
  constexpr int64_t kBytes = 60000;
  Program program;
  program.arenas = {arena(kBytes)};
  program.buffers = {{"w", "state", "nvme", 0, kBytes, 1, kBytes, "", ""}};
  std::unique_ptr<Device> device =
      addStorage(null::makeDevice(nullptr), program, {});
  Address address;
  Status made = device->allocate(program.arenas[0], address);
  ASSERT_TRUE(made.ok()) << made.message();
  EXPECT_FALSE(device->isHostMemory(address));
  std::vector<char> model(kBytes), host(kBytes), back(kBytes);
  ASSERT_TRUE(device->fill(address, 7, {kBytes}).ok());
  std::memset(model.data(), 7, model.size());
  std::mt19937 random(2);
  for (int turn = 0; turn < 200; ++turn) {
    for (char &byte : host)
      byte = static_cast<char>(random());
    Rows rows;
    rows.bytes = random() % 200 + 1;
    rows.inArena = static_cast<int64_t>(rows.bytes + random() % 3 * 50);
    rows.count =
        std::min<int64_t>(random() % 300 + 1, (kBytes - 300) / rows.inArena);
    rows.onHost = random() % 3 ? static_cast<int64_t>(rows.bytes) : 0;
    int64_t span =
        rows.inArena * (rows.count - 1) + static_cast<int64_t>(rows.bytes);
    int64_t at = static_cast<int64_t>(random()) % (kBytes - span + 1);
    switch (random() % 3) {
    case 0:
      uploadRows(model.data() + at, host.data(), rows);
      ASSERT_TRUE(device->upload(address + at, host.data(), rows).ok());
      break;
    case 1:
      fillRows(model.data() + at, turn, rows);
      ASSERT_TRUE(device->fill(address + at, turn, rows).ok());
      break;
    default:
      rows.onHost = static_cast<int64_t>(rows.bytes);
      ASSERT_TRUE(device->download(back.data(), address + at, rows).ok());
      downloadRows(host.data(), model.data() + at, rows);
      ASSERT_EQ(std::memcmp(back.data(), host.data(),
                            rows.bytes * static_cast<uint64_t>(rows.count)),
                0);
    }
  }
  ASSERT_TRUE(device->download(back.data(), address, {kBytes}).ok());
  EXPECT_TRUE(back == model);
}

TEST_P(Stored, SaysWhatTheDiskLacks) {
  std::unique_ptr<StoredFile> file;
  ArenaPlan huge = arena(int64_t(1) << 50);
  EXPECT_THAT(StoredFile::open(huge, {}, "cpu", nullptr, file).message(),
              testing::AllOf(HasSubstr("device 'cpu': expected room for the "
                                       "1125899906842624 bytes"),
                             HasSubstr(folder.path), HasSubstr("are free")));
  ArenaPlan nowhere = arena(4096);
  nowhere.storage->path += "/none";
  EXPECT_THAT(
      StoredFile::open(nowhere, {}, "cpu", nullptr, file).message(),
      testing::AllOf(HasSubstr("cannot make the file of space 'nvme' in "),
                     HasSubstr("/none' (offload.nvme_path): ")));
}

INSTANTIATE_TEST_SUITE_P(Blocks, Stored,
                         testing::Values(Layout{4096, 1}, Layout{4096, 3},
                                         Layout{8192, 2}, Layout{1 << 20, 8}));

using StoredRun = RunTest;

/// x goes to y by way of the file.
TEST_F(StoredRun, GoesByWayOfTheFile) {
  Executable executable = tinyExecutable(2);
  Program &program = executable.programs[0];
  program.arenas.push_back(
      {"nvme", 16, 4096, 0, StoragePlan{folder.path, 4096, 2}});
  program.buffers.push_back(
      {"stored", "activation", "nvme", 0, 16, 1, 16, "", ""});
  auto &commands = program.bodies[1].commands;
  auto copy = std::get<CopyCommand>(commands[1].what);
  View stored = copy.source;
  stored.buffer = static_cast<int64_t>(program.buffers.size()) - 1;
  commands[1].what = CopyCommand{copy.source, stored};
  commands.insert(commands.begin() + 2,
                  command(CopyCommand{stored, copy.target}, "Back"));
  write(executable);
  std::string expected;
  for (const DeviceKind *device :
       {static_cast<const DeviceKind *>(nullptr), &walledDevice()}) {
    options.ownDevice = device;
    options.outputs = folder / "out";
    options.poison = true;
    options.repeats = 3;
    ASSERT_EQ(run(), "");
    std::string found = slurp(folder / "out/y.npy");
    EXPECT_EQ(found, slurp(folder / "x.npy"));
    EXPECT_EQ(result.storageBytes, 16u);
    EXPECT_EQ(result.storageRead, 48u);
    EXPECT_EQ(result.storageWritten, 48u);
    EXPECT_EQ(result.plannedPeakBytes, result.measuredPeakBytes);
  }
}

} // namespace
