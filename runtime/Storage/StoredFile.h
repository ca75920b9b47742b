// The file that an arena of space nvme is. It has no name from its first byte
// on, so that it ends with the process however that ends, and nothing ever
// believes what an earlier run left there: it is no checkpoint.

#ifndef ACCEL_RUNTIME_STORAGE_STOREDFILE_H
#define ACCEL_RUNTIME_STORAGE_STOREDFILE_H

#include "Storage/BlockQueue.h"
#include "accel-rt/Memory.h"

#include <atomic>
#include <mutex>
#include <vector>

namespace accel::rt {

class StoredFile {
public:
  /// A buffer of the arena.
  struct Named {
    uint64_t offset, end;
    std::string name;
  };
  /// What is beside the file: bytes of the host's or, where `host` is null, of
  /// a device.
  struct Beside {
    char *host;
    Memory *memory;
    Address address;

    void get(char *target, uint64_t at, uint64_t bytes, Status &status) const;
    void put(uint64_t at, const char *source, uint64_t bytes,
             Status &status) const;
  };

  /// Makes one in the folder that the arena says, with room for all of it.
  /// `device` is for errors, `progress` grows with every block. Errors: the
  /// folder, the bytes wanted and those that are free.
  static Status open(const ArenaPlan &arena, std::vector<Named> buffers,
                     std::string device, std::atomic<uint64_t> *progress,
                     std::unique_ptr<StoredFile> &file);
  ~StoredFile();
  StoredFile(const StoredFile &) = delete;
  StoredFile &operator=(const StoredFile &) = delete;

  /// Moves bytes between the file and what is beside it; done when it returns.
  /// Any thread may call them, one at a time gets through. `counter` grows with
  /// the bytes of each block that has come. Errors name the device, the file,
  /// the buffer, and the bytes expected and found.
  Status read(uint64_t offset, uint64_t bytes, const Beside &target,
              std::atomic<uint64_t> *counter = nullptr) {
    return move({/*writes=*/false, offset, bytes, &target, counter});
  }
  Status write(uint64_t offset, uint64_t bytes, const Beside &source,
               std::atomic<uint64_t> *counter = nullptr) {
    return move({/*writes=*/true, offset, bytes, &source, counter});
  }

  /// Why blocks go otherwise than by io_uring past the cache of pages; empty:
  /// they do not.
  const std::string &whyPlain() const { return reason; }
  const std::string &folder() const { return path; }

private:
  /// One block under way, and how far it has come.
  struct Part {
    uint64_t begin = 0, end = 0, done = 0; ///< In the file, whole sectors.
    char *memory = nullptr;                ///< Staged, or the host's own.
    int tries = 0;                         ///< In a row that moved nothing.
  };
  /// A call of move().
  struct Range {
    bool writes;
    uint64_t offset, bytes;
    const Beside *beside = nullptr;
    std::atomic<uint64_t> *counter = nullptr;
  };

  static constexpr uint64_t kSector = static_cast<uint64_t>(kStorageSector);
  /// Looks in a row that move nothing: the kernel was interrupted, or is short
  /// of something.
  static constexpr int kMostTries = 1000;
  static uint64_t roundUp(uint64_t bytes, uint64_t to) {
    return (bytes + to - 1) / to * to;
  }

  StoredFile() = default;
  Status create(uint64_t bytes);
  Status chooseQueue();
  Status probe(int64_t &result);
  Status move(const Range &range);
  Status run(const Range &range);
  Status begin(const Range &range, size_t number);
  Status finish(const Range &range, size_t number, int64_t result, bool &again);
  Status fillEdges(const Range &range, const Part &part);
  Status readSector(uint64_t at, char *target);
  const Named *find(uint64_t offset) const;
  Status fail(const Range &range, const Part &part, const std::string &why);

  int fd = -1;
  std::string path, device, reason;
  std::vector<Named> buffers; ///< By their offsets.
  uint64_t blockBytes = 0, sector = 1;
  size_t depth = 0;
  char *staged = nullptr; ///< As many blocks as there are parts, and a sector.
  std::vector<Part> parts;
  std::unique_ptr<BlockQueue> queue;
  std::atomic<uint64_t> *progress = nullptr;
  std::mutex busy;
};

} // namespace accel::rt

#endif // ACCEL_RUNTIME_STORAGE_STOREDFILE_H
