// Reading keepers' messages on the thread that oversees.

#include "Control/NetworkCenter.h"

#include <cstring>

namespace accel::rt {

NetworkCenter::NetworkCenter(Keeper &keeper)
    : keeper(keeper), memory(keeper.memory()),
      ends(static_cast<size_t>(keeper.places().numRanks())), told(ends.size()) {
}

Status NetworkCenter::start(int64_t rank,
                            const std::function<int(ControlPlane &)> &life) {
  return rank == 0 ? keeper.startRank(life) : Status();
}

void NetworkCenter::pump() {
  std::vector<Keeper::Mail> mail;
  {
    std::lock_guard<std::mutex> lock(keeper.mutex);
    mail.swap(keeper.mail);
  }
  for (const Keeper::Mail &one : mail)
    take(one.from, one.bytes);
}

void NetworkCenter::take(int64_t from, const std::vector<char> &bytes) {
  Keeper::Header header;
  std::memcpy(&header, bytes.data(), sizeof header);
  const char *rest = bytes.data() + sizeof header;
  bool isHere = keeper.places().machineOf(from) == keeper.places().here();
  if (header.kind == Keeper::Kind::End) {
    ends[static_cast<size_t>(from)] =
        RankEnd{(header.number & 1) != 0, static_cast<int>(header.value),
                (header.number & 2) != 0};
  } else if (isHere) {
    return; // the rank has written it here itself
  } else if (header.kind == Keeper::Kind::Signs) {
    if (header.count)
      std::memcpy(&memory.seconds(from, header.number),
                  rest + sizeof(RankControl), header.count * sizeof(double));
    std::memcpy(static_cast<void *>(&memory.rank(from)), rest,
                sizeof(RankControl));
  } else if (header.kind == Keeper::Kind::Counts) {
    std::memcpy(&memory.counts(from, static_cast<size_t>(header.number)), rest,
                sizeof(Counts));
  }
}

std::optional<RankEnd> NetworkCenter::findEnd(int64_t rank) {
  size_t at = static_cast<size_t>(rank);
  if (rank == 0)
    return keeper.findEnd();
  pump();
  if (told[at])
    return std::nullopt;
  if (!ends[at] && keeper.isGone(rank)) {
    RankControl &signs = memory.rank(rank);
    std::string why;
    {
      std::lock_guard<std::mutex> lock(keeper.mutex);
      why = keeper.networkError;
    }
    std::string text = "machine " + inQuotes(keeper.places().hostOf(rank)) +
                       " has given no sign of life for " +
                       std::to_string(Keeper::kSilence.count() / 1000) +
                       " s: it, its network or its acc-run is gone" +
                       (why.empty() ? "" : " (" + why + ")");
    std::memset(signs.message, 0, sizeof signs.message);
    std::strncpy(signs.message, text.c_str(), sizeof signs.message - 1);
    signs.state = RankControl::Failed;
    ends[at] = RankEnd{false, 1};
  }
  told[at] = ends[at].has_value();
  return ends[at];
}

void NetworkCenter::kill(int64_t rank) {
  if (rank == 0)
    return keeper.killRank();
  keeper.send(rank, {Keeper::Kind::Kill});
}

pid_t NetworkCenter::process(int64_t rank) const {
  bool isHere = keeper.places().machineOf(rank) == keeper.places().here();
  return isHere ? memory.kept(rank).process.load() : 0;
}

const RankControl &NetworkCenter::rank(int64_t rank) {
  pump();
  return memory.rank(rank);
}
double NetworkCenter::seconds(int64_t rank, int64_t call) {
  pump();
  return memory.seconds(rank, call);
}
StepRecord NetworkCenter::record(int64_t call) { return memory.record(call); }
const Counts &NetworkCenter::counts(int64_t rank, size_t entry) {
  pump();
  return memory.counts(rank, entry);
}
void NetworkCenter::wantStop() {
  memory.head().stopWanted = true;
  keeper.sendAll({Keeper::Kind::Stop});
}
bool NetworkCenter::isStopWanted() const { return memory.head().stopWanted; }
void NetworkCenter::abort() {
  keeper.isEnding = true;
  memory.abort();
}
bool NetworkCenter::isAborted() { return memory.head().abort.load() != 0; }

} // namespace accel::rt
