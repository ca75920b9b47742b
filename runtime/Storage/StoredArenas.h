// A device with an arena of space nvme: all of another device, and a file
// (StoredFile.h). Its addresses are no memory's, so that what reaches for one
// otherwise than by Memory's copies ends there.

#ifndef ACCEL_RUNTIME_STORAGE_STOREDARENAS_H
#define ACCEL_RUNTIME_STORAGE_STOREDARENAS_H

#include "accel-rt/Device.h"

#include <functional>

namespace accel::rt {

/// What copies have moved, and why they did not go as they should.
struct StorageUse {
  std::atomic<uint64_t> *progress = nullptr, *read = nullptr,
                        *written = nullptr;
  /// Called once, at load, with a sentence.
  std::function<void(const std::string &)> warn;
};

/// Whether a command moves bytes of a file: a task of the host's, which waits
/// for the disk.
bool touchesStorage(const Program &program, const Command &command);

/// `device` as it is where a program has no such arena. `program` and what
/// `use` points to must outlive it.
std::unique_ptr<Device> addStorage(std::unique_ptr<Device> device,
                                   const Program &program, StorageUse use);

} // namespace accel::rt

#endif // ACCEL_RUNTIME_STORAGE_STOREDARENAS_H
