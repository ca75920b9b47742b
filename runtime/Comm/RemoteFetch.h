// Rows that a rank fetches from ranks of other machines, and those that they
// fetch from it. Both sides see the names, so that only rows travel that are
// named.

#ifndef ACCEL_RUNTIME_COMM_REMOTEFETCH_H
#define ACCEL_RUNTIME_COMM_REMOTEFETCH_H

#include "Comm/HostComm.h"

namespace accel::rt {

/// What is fetched, of every rank of the group: `rows` rows, named by place ·
/// peerRows + row.
struct FetchedRows {
  int64_t rows, peerRows, rowBytes, inputStep, outputStep;
};

class RemoteFetch {
public:
  /// The group has ranks of other machines. `stream` is one of
  /// HostMemory::streams.
  RemoteFetch(const FetchedRows &shape, const Group &group, size_t stream,
              HostRank &self);
  /// At preparation.
  Status connect();
  /// Fetches the rows of `wanted` that other machines have, and gives what they
  /// want. Errors: the run is aborted.
  Status run(const char *input, char *output, const int64_t *wanted);

private:
  /// Bytes that go to one rank or come from one, in pieces: calls of a function
  /// that fills a slot with what begins at a byte, or takes it out.
  template <class F> struct Flow {
    int64_t peer;
    uint64_t bytes;
    F move;
  };
  template <class F> Flow(int64_t, uint64_t, F) -> Flow<F>;
  template <class Fill, class Keep>
  Status exchange(const Flow<Fill> &to, const Flow<Keep> &from, bool isIndex);
  template <class F>
  void forPieces(const std::vector<int64_t> &list, uint64_t at, uint64_t bytes,
                 F &&f) const;
  /// Where in `index` rows of that place are named.
  void list(const int64_t *index, int64_t place,
            std::vector<int64_t> &found) const;
  char *slot(Staging::Ring ring, uint64_t number);

  FetchedRows shape;
  const Group &group;
  size_t stream;
  HostRank &self;
  Carrier &carrier;
  /// The other's names, and which of its and of this rank's are each other's:
  /// as long as they can be, because running allocates nothing.
  std::vector<int64_t> theirs, given, taken;
};

} // namespace accel::rt

#endif // ACCEL_RUNTIME_COMM_REMOTEFETCH_H
