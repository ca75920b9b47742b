// Tensors in files: a range of an open file with a shape, and reading or
// writing a rank's piece of it. Weights, inputs and outputs all go through
// here.

#ifndef ACCEL_RUNTIME_DATA_TENSORFILE_H
#define ACCEL_RUNTIME_DATA_TENSORFILE_H

#include "Format/Layout.h"
#include "accel-rt/TensorFileFormat.h"

#include <atomic>

namespace accel::rt {

/// A file descriptor that closes itself.
class FileHandle {
public:
  FileHandle() = default;
  explicit FileHandle(int fd) : fd(fd) {}
  FileHandle(FileHandle &&other) : fd(std::exchange(other.fd, -1)) {}
  FileHandle &operator=(FileHandle &&other) {
    std::swap(fd, other.fd);
    return *this;
  }
  ~FileHandle();
  int get() const { return fd; }
  explicit operator bool() const { return fd >= 0; }

private:
  int fd = -1;
};

/// A tensor's elements in a file: `strides` in elements, `offset` in bytes.
struct TensorRange {
  int fd = -1;
  std::string path; ///< For messages.
  uint64_t offset = 0;
  DType dtype = DType::F32; ///< Of the elements in the file.
  std::vector<int64_t> shape, strides;
  /// Not empty: there is no file, every element has these bytes.
  std::vector<char> fill = {};
};

/// A tensor in an open file, by its name.
struct OpenTensor {
  std::string name;
  TensorRange range;
};

/// "[4, 2]", and "f32 [4, 2]": for messages.
std::string shapeText(const std::vector<int64_t> &shape);
std::string typeText(DType dtype, const std::vector<int64_t> &shape);

/// Opens a file to read it; errno says why it could not be.
FileHandle openForReading(const std::string &path);

/// Errors: it is no regular file, or the system says why its size cannot be
/// told.
Status sizeOfFile(int fd, const std::string &path, uint64_t &bytes);

/// Reads all of [offset, offset + bytes); the file's end is an error.
Status readRange(int fd, const std::string &path, uint64_t offset, void *target,
                 uint64_t bytes);
Status writeRange(int fd, const std::string &path, uint64_t offset,
                  const void *source, uint64_t bytes);

class RangeDigest;

/// Moves one piece between a file and a view of a device's memory, or of the
/// host's own. Prepared once; moving allocates nothing, but what the first
/// write that rounds goes through.
class PieceMover {
public:
  /// The piece of `range` that `view` holds: its part at `coordinates`.
  /// Requires the shapes to fit (format::validate). Where the part is larger
  /// than the range, it is padded at the end of its dimensions: reading gives
  /// zeros there, writing skips them. Reading converts where the file has
  /// elements of another type, writing rounds to it, floating point alone
  /// (Data/ConvertElements.h).
  /// Pieces that are scattered in memory, or where the host cannot reach, move
  /// through `room`, which several movers may share, or through a buffer of
  /// their own. `memory` is what the view is in; null: the host's own
  /// (Memory::ifRemote).
  PieceMover(const TensorRange &range, const Part &part, const View &view,
             const Coordinates &coordinates, Memory *memory = nullptr,
             std::vector<char> *room = nullptr);

  /// Another file in the place of the range's.
  void setFile(int file) { fd = file; }

  /// Bytes of the piece are counted in `counter` and hashed into `digest`,
  /// where these are given, as they are read and before they are converted.
  Status read(Address view, int64_t microBatch,
              std::atomic<uint64_t> *counter = nullptr,
              RangeDigest *digest = nullptr);
  /// Reads what lies `bytes` behind the piece in the file, as if the range
  /// began there.
  Status readBehind(uint64_t bytes, Address view, int64_t microBatch);
  Status write(Address view, int64_t microBatch);
  /// The same of the host's own memory.
  Status read(void *view, int64_t microBatch,
              std::atomic<uint64_t> *counter = nullptr,
              RangeDigest *digest = nullptr);
  Status write(const void *view, int64_t microBatch);

private:
  template <bool Writes>
  Status move(Address view, int64_t microBatch, std::atomic<uint64_t> *counter,
              RangeDigest *digest);

  /// A rectangle of the file that is one of the view.
  struct Block {
    uint64_t start = 0;      ///< Byte of its first element, mb 0 …
    int64_t inView = 0;      ///< … and where the view has that.
    PairLayout outer;        ///< Runs that are contiguous in the file …
    int64_t runElements = 1; ///< … have this many elements …
    PairLayout run;          ///< … and lie so in memory (A: file, B: view).
    bool direct = false;     ///< A run is contiguous where the host reaches.
  };
  void addBlock(const TensorRange &range, const View &view,
                const std::vector<int64_t> &size, int64_t inFile,
                int64_t inView);
  template <bool Writes>
  Status moveBlock(const Block &block, Address view, int64_t microBatch,
                   std::atomic<uint64_t> *counter, RangeDigest *digest);
  Status fillBlock(const Block &block, Address view) const;

  /// Elements of the view, at strides in elements, to and from the host.
  Status put(Address view, int64_t at, int64_t stride, const void *host,
             int64_t hostStride, int64_t count) const;
  Status get(void *host, int64_t hostStride, Address view, int64_t at,
             int64_t stride, int64_t count) const;
  /// Zeroes all of the view, padding included.
  Status clear(Address view) const;
  bool isReached() const { return !memory; }

  Memory *memory; ///< Null: addresses are the host's.
  int fd;
  std::string path;
  std::vector<char> fill;
  DType inFile, inMemory;      ///< Types of elements.
  int64_t elementBytes;        ///< In memory.
  int64_t fileBytes;           ///< Of an element in the file.
  uint64_t origin;             ///< Byte of the tensor's first element.
  int64_t microBatchBytes = 0; ///< Bytes between micro-batches.
  uint64_t behind = 0;         ///< Bytes that a read begins later.
  std::vector<Block> blocks;   ///< Of the piece; several: it is interleaved.
  PairLayout all;              ///< The whole view (A), padding included.
  bool isPadded = false;       ///< Some of the view is not in the file.
  std::vector<char> bounce;    ///< Between the file and another view …
  std::vector<char> *room;     ///< … or this, if not null.
};

} // namespace accel::rt

#endif // ACCEL_RUNTIME_DATA_TENSORFILE_H
