// Which calls are for the file.

#include "Storage/StoredArenas.h"

#include "Format/Layout.h"
#include "Format/Views.h"
#include "Storage/StoredFile.h"

#include <algorithm>
#include <cstring>

namespace accel::rt {
namespace {

/// Far from where memory of a process or of a device has its addresses.
constexpr uint64_t kFirstAddress = uint64_t(1) << 62;

uint64_t bytesOf(const View &view) {
  uint64_t bytes = static_cast<uint64_t>(dtypeBytes(view.dtype));
  for (int64_t size : view.shape)
    bytes *= static_cast<uint64_t>(size);
  return bytes;
}

bool isContiguous(const View &view) {
  return view.shape.empty() || view.strides == rowMajorStrides(view.shape);
}

class StoredArenas : public Device {
public:
  StoredArenas(std::unique_ptr<Device> inner, const Program &program,
               StorageUse use)
      : inner(std::move(inner)), program(program), use(std::move(use)) {}

  const char *name() const override { return inner->name(); }

  Status allocate(const ArenaPlan &arena, Address &address) override {
    if (!arena.isStored())
      return inner->allocate(arena, address);
    std::vector<StoredFile::Named> buffers;
    for (const BufferPlan &buffer : program.buffers)
      if (buffer.space == arena.space)
        buffers.push_back({static_cast<uint64_t>(buffer.offset),
                           static_cast<uint64_t>(buffer.offset + buffer.bytes),
                           buffer.name});
    ACCEL_RT_RETURN_IF_ERROR(StoredFile::open(
        arena, std::move(buffers), inner->name(), use.progress, file));
    if (!file->whyPlain().empty() && use.warn)
      use.warn("space 'nvme' in " + inQuotes(file->folder()) + ": " +
               file->whyPlain());
    scratch.resize(static_cast<size_t>(arena.storage->blockBytes));
    bytes = static_cast<uint64_t>(arena.bytes);
    address = {kFirstAddress};
    return Status();
  }
  /// Of memory: what a file has is no process's.
  uint64_t allocatedBytes() const override { return inner->allocatedBytes(); }

  bool isHostMemory(Address address) const override {
    return !isStored(address) && inner->isHostMemory(address);
  }
  Status share(void *host, uint64_t size, Address &address) override {
    return inner->share(host, size, address);
  }
  Status upload(Address target, const void *source, const Rows &rows) override {
    if (!isStored(target))
      return inner->upload(target, source, rows);
    return eachSpan(target, rows, [&](const Span &span, const Rows &part) {
      const char *from = static_cast<const char *>(source) + span.onHost;
      if (isOneRow(part))
        return file->write(span.offset, span.bytes, onHost(from));
      // What lies between rows stays as it is.
      if (part.inArena != static_cast<int64_t>(part.bytes))
        ACCEL_RT_RETURN_IF_ERROR(
            file->read(span.offset, span.bytes, onHost(scratch.data())));
      uploadRows(scratch.data(), from, part);
      return file->write(span.offset, span.bytes, onHost(scratch.data()));
    });
  }
  Status download(void *target, Address source, const Rows &rows) override {
    if (!isStored(source))
      return inner->download(target, source, rows);
    return eachSpan(source, rows, [&](const Span &span, const Rows &part) {
      char *to = static_cast<char *>(target) + span.onHost;
      if (isOneRow(part))
        return file->read(span.offset, span.bytes, onHost(to));
      ACCEL_RT_RETURN_IF_ERROR(
          file->read(span.offset, span.bytes, onHost(scratch.data())));
      downloadRows(to, scratch.data(), part);
      return Status();
    });
  }
  Status fill(Address target, int byte, const Rows &rows) override {
    if (!isStored(target))
      return inner->fill(target, byte, rows);
    return eachSpan(target, rows, [&](const Span &span, const Rows &part) {
      if (!isOneRow(part) && part.inArena != static_cast<int64_t>(part.bytes))
        ACCEL_RT_RETURN_IF_ERROR(
            file->read(span.offset, span.bytes, onHost(scratch.data())));
      for (uint64_t done = 0; done < span.bytes; done += scratch.size()) {
        uint64_t bytes = std::min<uint64_t>(scratch.size(), span.bytes - done);
        if (isOneRow(part))
          std::memset(scratch.data(), byte, bytes);
        else
          fillRows(scratch.data(), byte, part);
        ACCEL_RT_RETURN_IF_ERROR(
            file->write(span.offset + done, bytes, onHost(scratch.data())));
      }
      return Status();
    });
  }

  Status prepare(const Command &command, std::unique_ptr<Task> &task) override {
    if (!touchesStorage(program, command))
      return inner->prepare(command, task);
    auto *copy = std::get_if<CopyCommand>(&command.what);
    if (!copy || isStored(copy->source) == isStored(copy->target) ||
        !isContiguous(copy->source) || !isContiguous(copy->target))
      return Status::error("expected bytes of space 'nvme' to be copied as "
                           "they follow each other, to memory or from it");
    task = std::make_unique<StoredCopy>(*this, *copy);
    return Status();
  }
  bool capturesHostTasks() const override { return inner->capturesHostTasks(); }
  size_t mostCaptured() const override { return inner->mostCaptured(); }
  Status makeStreams(const StreamPlan &plan, StreamWatcher &watcher,
                     std::unique_ptr<Streams> &streams) override {
    return inner->makeStreams(plan, watcher, streams);
  }

private:
  class StoredCopy : public HostTask {
  public:
    StoredCopy(StoredArenas &owner, const CopyCommand &copy)
        : owner(owner), writes(owner.isStored(copy.target)),
          bytes(bytesOf(copy.target)) {
      size_t seen = 0;
      Command command;
      command.what = copy;
      format::forEachView(command, [&](const View &view) {
        (owner.isStored(view) ? inFile : inMemory) = seen++;
      });
    }
    Status run(const Address *views, int64_t) override {
      Address address = views[inMemory];
      StoredFile::Beside beside{owner.inner->find(address), owner.inner.get(),
                                address};
      uint64_t offset = owner.offsetOf(views[inFile]);
      return writes
                 ? owner.file->write(offset, bytes, beside, owner.use.written)
                 : owner.file->read(offset, bytes, beside, owner.use.read);
    }

  private:
    StoredArenas &owner;
    bool writes;
    uint64_t bytes;
    size_t inFile = 0, inMemory = 0;
  };

  bool isStored(Address address) const {
    return address.value - kFirstAddress < bytes;
  }
  bool isStored(const View &view) const {
    return program.buffers[static_cast<size_t>(view.buffer)].space ==
           kStorageSpace;
  }
  uint64_t offsetOf(Address address) const {
    return address.value - kFirstAddress;
  }

  /// Bytes that follow each other in the file, which rows lie in, and where the
  /// first of these is on the host.
  struct Span {
    uint64_t offset, bytes;
    int64_t onHost;
  };
  static StoredFile::Beside onHost(const char *memory) {
    // What is written is only read: blocks have one type for both ways.
    return {const_cast<char *>(memory), nullptr, {}};
  }
  static bool isOneRow(const Rows &rows) { return rows.count == 1; }

  /// Calls f(span, rows) for the rows, as many at once as fit into `scratch`;
  /// those that follow each other on both sides are one, however long.
  template <class F> Status eachSpan(Address address, Rows rows, F &&f) {
    std::lock_guard<std::mutex> lock(busy);
    uint64_t offset = offsetOf(address);
    auto step = static_cast<int64_t>(rows.bytes);
    if (rows.inArena == step && rows.onHost == step) {
      rows.bytes *= static_cast<uint64_t>(rows.count);
      rows.count = 1;
    }
    int64_t most = 1;
    auto room = static_cast<int64_t>(scratch.size());
    if (rows.inArena >= step && step <= room)
      most = (room - step) / std::max<int64_t>(rows.inArena, 1) + 1;
    for (int64_t row = 0; row < rows.count; row += most) {
      Rows part = rows;
      part.count = std::min(most, rows.count - row);
      Span span{offset + static_cast<uint64_t>(row * rows.inArena),
                static_cast<uint64_t>((part.count - 1) * rows.inArena) +
                    rows.bytes,
                row * rows.onHost};
      ACCEL_RT_RETURN_IF_ERROR(f(span, part));
    }
    return Status();
  }

  std::unique_ptr<Device> inner;
  const Program &program;
  StorageUse use;
  std::unique_ptr<StoredFile> file;
  uint64_t bytes = 0;
  std::mutex busy;           ///< Who has `scratch`.
  std::vector<char> scratch; ///< Rows that lie apart; a block.
};

} // namespace

bool touchesStorage(const Program &program, const Command &command) {
  bool touches = false;
  format::forEachView(command, [&](const View &view) {
    touches |= program.buffers[static_cast<size_t>(view.buffer)].space ==
               kStorageSpace;
  });
  return touches;
}

std::unique_ptr<Device> addStorage(std::unique_ptr<Device> device,
                                   const Program &program, StorageUse use) {
  bool isStored =
      std::any_of(program.arenas.begin(), program.arenas.end(),
                  [](const auto &arena) { return arena.isStored(); });
  return isStored ? std::make_unique<StoredArenas>(std::move(device), program,
                                                   std::move(use))
                  : std::move(device);
}

} // namespace accel::rt
