// Moving chunks between machines: what one rank does of a collective, or of
// sends and receives, whose ranks are on several machines. Builders
// (RemoteCollective.cpp, RemoteMail.cpp) list what it is once, at preparation;
// running it allocates nothing. Bytes go through the slots of the stream's
// Staging, and its keeper takes them to the other machines by the Wire.

#ifndef ACCEL_RUNTIME_COMM_REMOTETASK_H
#define ACCEL_RUNTIME_COMM_REMOTETASK_H

#include "Comm/Transfer.h"

namespace accel::rt {

/// A run of elements of one view, in a chunk.
struct Fragment {
  size_t view;        ///< A number of RemoteMoves::Views.
  int64_t begin, end; ///< In the row-major order of what moves.
  int64_t inputAt;    ///< Bytes to add to the input's address.
  int64_t outputAt;   ///< To the output's.
  /// Where it is in a slot of accumulators, and in one of elements.
  uint64_t at[2];
};

/// One thing to do with a chunk.
struct RemoteMove {
  size_t firstFragment = 0, lastFragment = 0;
  uint64_t bytes[2] = {}; ///< Of the chunk, in accumulators, and in elements.

  // What comes, and from which of the sender's rings.
  int64_t from = -1, tagIn = 0;
  Staging::Ring fromRing = Staging::Out;
  Fold::Kind comes = Fold::Term;
  /// What comes is behind this machine's terms, else before them.
  bool comesLast = false;

  // The terms of this machine: places in the group.
  size_t firstTerm = 0, lastTerm = 0;
  bool isLast = true; ///< Combined with them it is the result.
  /// As many of `outs` must have left before, because the result may lie where
  /// the last of them is taken from; 0: none.
  size_t needsOut = 0;

  // Where it goes: ranks of other machines, this rank's output, and ranks of
  // this machine that read the slot.
  std::vector<int64_t> targets;
  int64_t tagOut = 0;
  bool isMine = false;
  uint32_t readers = 0;

  bool folds() const { return lastTerm > firstTerm; }
};

/// A chunk that another rank of this machine has in a slot, or in its input.
struct LocalMove {
  size_t firstFragment = 0, lastFragment = 0;
  int64_t publisher = -1; ///< A rank; its input where `ring` is kRings.
  int ring = Staging::kRings;
  uint64_t ordinal = 0; ///< In that ring, in this run.
};

/// What a rank does, in the order of the chunks.
struct RemoteMoves {
  std::vector<Fragment> fragments;
  std::vector<RemoteMove> outs; ///< Need nothing that comes.
  std::vector<RemoteMove> ins;
  std::vector<LocalMove> locals;
  uint64_t numCombined = 0; ///< Of `ins`, those that fold.
};

/// Runs moves on one stream.
class RemoteMover {
public:
  /// What a fragment's view is.
  struct View {
    DType dtype;
    int64_t bytes; ///< Of an element.
    PairLayout pack, unpack, direct;
  };
  /// `stream` is one of HostMemory::streams.
  RemoteMover(RemoteMoves moves, std::vector<View> views, Combine combine,
              size_t stream, Carrier &carrier, HostRank &self);
  /// Tells the carrier who messages go to and come from.
  Status connect();

  /// Addresses of this run, to be filled before start(): of each view, and of
  /// each term's input (a place's distance, by view and place).
  std::vector<char *> inputs, outputs;
  std::vector<std::vector<int64_t>> toTerm;
  std::vector<int64_t> termOf;     ///< By rank, its place.
  std::vector<int64_t> neighbours; ///< The other ranks here that read slots.

  /// Before the others of this machine may look at its slots.
  void start();
  /// Until all is done. Errors: the run is aborted.
  Status run();
  /// After nobody looks any more.
  void end();

private:
  Status goOn(bool &moved);
  bool freeRequests();
  bool sendNext();
  bool haveLeft(size_t outs) const;
  bool receiveNext();
  bool useNext();
  bool copyNext();
  bool hasRoom(Staging::Ring ring, uint64_t number, size_t targets);
  void request(Staging::Ring slots, uint64_t number,
               const CarrierMessage &message);
  char *findOutput(const RemoteMove &move);
  char *slotOf(int64_t rank, int ring, uint64_t number);
  void fold(const RemoteMove &move, const char *came, char *target);
  void fill(const RemoteMove &move, char *target);
  void keep(size_t first, size_t last, const char *slot);
  void publish(Staging::Ring ring, uint64_t number, uint32_t readers);
  bool isDone() const;

  RemoteMoves moves;
  std::vector<View> views;
  Combine combine;
  size_t stream;
  Carrier &carrier;
  HostRank &self;
  Word &bell;
  Staging &staging;
  std::vector<const void *> sources;
  bool sendsFirst;
  bool isExchange; ///< Each chunk that leaves is answered by one that comes.
  // Of a run.
  uint64_t base[Staging::kRings] = {};
  size_t sent = 0, posted = 0, used = 0, copied = 0;
  uint64_t combined = 0;
  int64_t copiedTo = 0; ///< Elements of the local move at hand, by fragment.
  size_t copiedFragment = 0;
  int busy[Staging::kRings][Staging::kSlots] = {};
  bool arrived[Staging::kSlots] = {};
  char *cameAt[Staging::kSlots] = {}; ///< A slot, or the output.
  int numBusy = 0;
  /// Whose each request is: a ring's slot.
  uint8_t ringOf[Wire::kRequests] = {}, slotOfRequest[Wire::kRequests] = {};
  bool isOurs[Wire::kRequests] = {};
};

/// The most machines that one message goes to.
constexpr size_t kMostTargets = 30;

/// Tags of the network, of a chunk and of a user's message.
int64_t chunkTag(size_t stream, uint64_t chunk, bool isResult);
int64_t mailTag(int64_t tag);

/// Makes the task of a collective whose group is on several machines.
Status prepareRemoteCollective(std::unique_ptr<Transfers> transfers,
                               const std::string &stream, HostRank &self,
                               std::unique_ptr<HostTask> &task);

/// A send or receive whose peer is on another machine.
struct RemoteLetter {
  bool sends;
  int64_t peer, tag;
  const View *view;
};

/// What a group of them is: view K of it is letter K. Both ends go through
/// their letters by tag, whatever order the program has them in.
std::unique_ptr<RemoteMover> makeLetters(std::vector<RemoteLetter> letters,
                                         const std::string &stream,
                                         HostRank &self);

/// The number of a stream among those that have a wire.
size_t wireOf(const HostRank &self, const std::string &stream);

} // namespace accel::rt

#endif // ACCEL_RUNTIME_COMM_REMOTETASK_H
