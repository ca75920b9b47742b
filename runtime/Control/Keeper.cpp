// The messages between keepers, and who sends them.

#include "Control/Keeper.h"

#include "Base/SystemError.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstring>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace accel::rt {
namespace {

using Clock = NetworkService::Clock;

constexpr auto kPoll = std::chrono::milliseconds(2);
/// How long a rank may take to end by itself once the run is aborted and nobody
/// else could end it, and keepers to say that they know that it is over.
constexpr auto kGrace = std::chrono::milliseconds(1000);
constexpr auto kFarewell = std::chrono::milliseconds(2000);

} // namespace

Keeper::Keeper(Machines &machines)
    : machines(machines), lost(static_cast<size_t>(machines.numRanks())),
      acknowledged(static_cast<size_t>(machines.numRanks())) {}

Keeper::~Keeper() {
  if (child > 0)
    killRank();
}

Status Keeper::create(const ControlSize &size, int spin) {
  ACCEL_RT_RETURN_IF_ERROR(shared.create(machines, size, spin));
  service = std::make_unique<NetworkService>(machines.net(),
                                             shared.kept(rank()).bell);
  return Status();
}

Status Keeper::startRank(const std::function<int(ControlPlane &)> &life) {
  ACCEL_RT_RETURN_IF_ERROR(
      service->start({[this](int64_t from, const char *data, size_t bytes) {
                        take(from, data, bytes);
                      },
                      [this] { return tick(); },
                      [this](const std::string &why) {
                        std::lock_guard<std::mutex> lock(mutex);
                        networkError = why;
                      }}));
  pid_t parent = getpid(), made = fork();
  if (made == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
      _exit(1); // the keeper ended before the line above
    _exit(life(*shared.makePlane(rank())));
  }
  if (made < 0)
    return Status::error("cannot start rank " + std::to_string(rank()) + ": " +
                         systemError(errno));
  child = made;
  shared.kept(rank()).process = made;
  return Status();
}

std::optional<RankEnd> Keeper::findEnd() {
  std::optional<RankEnd> end = collectRank(child);
  if (!end)
    return std::nullopt;
  child = 0;
  shared.kept(rank()).process = 0;
  childEnd = end;
  return end;
}

void Keeper::killRank() {
  if (child > 0)
    kill(child, SIGKILL);
}

//===----------------------------------------------------------------------===//
// Messages
//===----------------------------------------------------------------------===//

void Keeper::send(int64_t to, Header header, const void *data, size_t bytes) {
  if (!lost[static_cast<size_t>(to)])
    service->post(to, &header, sizeof header, data, bytes);
}

void Keeper::sendAll(Header header, const void *data, size_t bytes) {
  for (int64_t other = 0; other < machines.numRanks(); ++other)
    if (other != rank())
      send(other, header, data, bytes);
}

void Keeper::take(int64_t from, const char *data, size_t bytes) {
  Header header;
  if (bytes < sizeof header)
    return;
  std::memcpy(&header, data, sizeof header);
  const char *rest = data + sizeof header;
  switch (header.kind) {
  case Kind::Signs:
  case Kind::Counts:
  case Kind::End: {
    std::lock_guard<std::mutex> lock(mutex);
    mail.push_back({from, std::vector<char>(data, data + bytes)});
    return;
  }
  case Kind::Words:
    for (uint32_t i = 0; i < header.count; ++i) {
      uint64_t pair[2];
      std::memcpy(pair, rest + i * sizeof pair, sizeof pair);
      if (pair[0] < shared.sizes().words)
        shared.word(pair[0]).store(pair[1]);
    }
    if (rank() == 0) // they are before the Go that opens the meeting
      for (int64_t machine = 0; machine < machines.numMachines(); ++machine)
        if (machine != machines.here() && machine != machines.machineOf(from))
          send(machines.ranksOf(machine)[0], header, rest,
               bytes - sizeof header);
    return;
  case Kind::Arrive:
    return arrive(static_cast<uint32_t>(header.number), header.value);
  case Kind::Go:
    return shared.open(static_cast<uint32_t>(header.number), header.value);
  case Kind::Stop:
    shared.head().stopWanted = true;
    return;
  case Kind::Abort:
    return shared.abort();
  case Kind::Kill:
    killWanted = true;
    return;
  case Kind::Alive:
    return; // that it came was all
  case Kind::Over:
    exitCode = static_cast<int>(header.value);
    over = true;
    send(0, {Kind::Farewell});
    return;
  case Kind::Farewell:
    acknowledged[static_cast<size_t>(from)] = true;
    return;
  }
}

bool Keeper::tick() {
  MachineControl::Head &head = shared.head();
  if (head.abort.load() && !toldAbort) {
    toldAbort = true;
    if (rank() == 0)
      sendAll({Kind::Abort});
    else
      send(0, {Kind::Abort});
  }
  bool waits = false;
  if (machines.leads() && machines.numMachines() > 1) {
    bringWords(); // also those for which nobody meets
    bringArrival();
    waits = head.here.load() != head.everywhere.load();
  }
  auto now = Clock::now();
  const RankControl &signs = shared.rank(rank());
  bool isDue = now - lastSign >= kSign;
  if (rank() != 0 && !toldEnd) {
    bool ends = endToTell;
    if (isDue || ends || signs.runsDone != toldRuns)
      tellSigns();
    if (ends)
      tellEnd();
  } else if (isDue) {
    if (rank() == 0)
      sendAll({Kind::Alive});
    else
      send(0, {Kind::Alive});
  }
  if (isDue) {
    lastSign = now;
    lookForLost();
  }
  return waits;
}

void Keeper::tellSigns() {
  RankControl &signs = shared.rank(rank());
  toldRuns = signs.runsDone;
  constexpr size_t kMost =
      (NetworkService::kMaxMessage - sizeof(Header) - sizeof(RankControl)) /
      sizeof(double);
  int64_t reported = shared.kept(rank()).reported;
  do {
    // What was reported is there when the count of runs says so: it goes first.
    Header header{Kind::Signs};
    header.number = toldCalls;
    header.count = static_cast<uint32_t>(
        std::min<int64_t>(reported - toldCalls, static_cast<int64_t>(kMost)));
    std::vector<char> text(sizeof signs + header.count * sizeof(double));
    std::memcpy(text.data(), static_cast<void *>(&signs), sizeof signs);
    if (header.count)
      std::memcpy(text.data() + sizeof signs,
                  &shared.seconds(rank(), toldCalls),
                  header.count * sizeof(double));
    toldCalls += header.count;
    if (toldCalls < reported) // the last one says how far it is
      std::memset(text.data() + offsetof(RankControl, runsDone), 0,
                  sizeof signs.runsDone);
    send(0, header, text.data(), text.size());
  } while (toldCalls < reported);
}

void Keeper::tellEnd() {
  toldEnd = true;
  for (size_t entry = 0; entry < shared.sizes().entries; ++entry) {
    Header header{Kind::Counts};
    header.number = static_cast<int64_t>(entry);
    send(0, header, &shared.counts(rank(), entry), sizeof(Counts));
  }
  Header header{Kind::End};
  header.number = childEnd->bySignal + 2 * childEnd->isOutOfTime;
  header.value = childEnd->code;
  send(0, header);
}

//===----------------------------------------------------------------------===//
// Meetings
//===----------------------------------------------------------------------===//

/// Of a machine's leader: what its ranks posted.
void Keeper::bringWords() {
  constexpr size_t kMost =
      (NetworkService::kMaxMessage - sizeof(Header)) / (2 * sizeof(uint64_t));
  std::vector<uint64_t> pairs;
  auto flush = [&] {
    Header header{Kind::Words};
    header.count = static_cast<uint32_t>(pairs.size() / 2);
    if (pairs.empty())
      return;
    for (int64_t machine = 0; machine < machines.numMachines(); ++machine)
      if (machine != machines.here() && (rank() == 0 || machine == 0))
        send(machines.ranksOf(machine)[0], header, pairs.data(),
             pairs.size() * sizeof(uint64_t));
    pairs.clear();
  };
  size_t word;
  while (shared.takePosted(word)) {
    pairs.push_back(word);
    pairs.push_back(shared.word(word).load());
    if (pairs.size() == 2 * kMost)
      flush();
  }
  flush();
}

/// Of a machine's leader: that its ranks came, after what they posted before.
void Keeper::bringArrival() {
  uint32_t turn = shared.head().here.load();
  if (turn == broughtTurn)
    return;
  broughtTurn = turn;
  bringWords();
  int64_t value = shared.head().came[turn % 2].load();
  if (rank() == 0)
    return arrive(turn, value);
  Header header{Kind::Arrive};
  header.number = turn;
  header.value = value;
  send(0, header);
}

/// Of rank 0's keeper: a machine has come.
void Keeper::arrive(uint32_t turn, int64_t value) {
  greatest = std::max(greatest, value);
  if (++arrivals < machines.numMachines())
    return;
  Header header{Kind::Go};
  header.number = turn;
  header.value = greatest;
  arrivals = 0;
  greatest = INT64_MIN;
  for (int64_t machine = 0; machine < machines.numMachines(); ++machine)
    if (machine != machines.here())
      send(machines.ranksOf(machine)[0], header);
  shared.open(turn, header.value);
}

//===----------------------------------------------------------------------===//
// Signs of life, and the end
//===----------------------------------------------------------------------===//

std::chrono::nanoseconds Keeper::silenceOf(int64_t other) const {
  return Clock::now() - service->heard(other);
}

void Keeper::lookForLost() {
  if (over)
    return; // those who are told go, and are silent
  for (int64_t other = 0; other < machines.numRanks(); ++other) {
    if (other == rank() || (rank() != 0 && other != 0) ||
        lost[static_cast<size_t>(other)] || silenceOf(other) <= kSilence)
      continue;
    bool isBusy = false;
    for (int64_t near : machines.ranksOf(machines.machineOf(other)))
      isBusy |= Clock::now() - service->heardData(near) <= kSilence;
    if (!isBusy || silenceOf(other) > kSlowSilence)
      lose(other);
  }
}

bool Keeper::isGone(int64_t other) {
  return lost[static_cast<size_t>(other)] ||
         (isEnding && silenceOf(other) > kShortSilence);
}

std::string Keeper::whoIsSilent() const {
  std::string text;
  for (int64_t machine = 0; machine < machines.numMachines(); ++machine) {
    std::string ranks;
    for (int64_t other : machines.ranksOf(machine))
      if (other != rank() && silenceOf(other) > kShortSilence)
        ranks += (ranks.empty() ? "" : ", ") + std::to_string(other);
    if (!ranks.empty())
      text += "; machine " +
              inQuotes(machines.hostOf(machines.ranksOf(machine)[0])) +
              " (rank " + ranks + ") gives no sign of life, which may be why";
  }
  return text;
}

void Keeper::lose(int64_t other) {
  lost[static_cast<size_t>(other)] = true;
  shared.abort();
}

/// Ends the run because of this keeper's rank.
void Keeper::fail(const Status &status) {
  RankControl &signs = shared.rank(rank());
  std::strncpy(signs.message, status.message().c_str(),
               sizeof signs.message - 1);
  signs.state = RankControl::Failed;
  childEnd = RankEnd{false, 1};
  shared.abort();
}

int Keeper::follow(Status &error, const std::function<Status()> &atEnd) {
  if (!error.ok()) {
    fail(error);
    error = Status();
    endToTell = true;
  }
  Clock::time_point killAt{};
  while (!over) {
    if (std::optional<RankEnd> end = findEnd()) {
      if (!end->bySignal && end->code == 0)
        if (Status status = atEnd(); !status.ok())
          fail(status);
      endToTell = true;
    }
    if (killWanted)
      killRank();
    if (lost[0]) {
      if (killAt == Clock::time_point{})
        killAt = Clock::now() + kGrace;
      if (Clock::now() > killAt)
        killRank();
      if (child <= 0)
        break;
    }
    std::this_thread::sleep_for(kPoll);
  }
  killRank();
  service->stop();
  if (!over) {
    std::string why;
    {
      std::lock_guard<std::mutex> lock(mutex);
      why = networkError;
    }
    // One of each machine speaks.
    if (machines.leads())
      error = Status::error("machine " + inQuotes(machines.hostOf(0)) +
                            " of rank 0 has given no sign of life for " +
                            std::to_string(kSilence.count() / 1000) +
                            " s: it, its network or its acc-run is gone" +
                            (why.empty() ? "" : " (" + why + ")") +
                            "; the ranks of machine " +
                            inQuotes(machines.hostOf(rank())) + " have ended");
    return 1;
  }
  if (exitCode == 0)
    machines.net().finish();
  return exitCode;
}

void Keeper::finish(int code) {
  if (!service)
    return;
  over = true;
  Header header{Kind::Over};
  header.value = code;
  sendAll(header);
  auto isDone = [&] {
    for (int64_t other = 1; other < machines.numRanks(); ++other)
      if (!acknowledged[static_cast<size_t>(other)] &&
          !lost[static_cast<size_t>(other)] &&
          silenceOf(other) <= kShortSilence)
        return false;
    return true;
  };
  for (auto until = Clock::now() + kFarewell;
       !isDone() && Clock::now() < until;)
    std::this_thread::sleep_for(kPoll);
  service->stop();
  if (code == 0)
    machines.net().finish();
}

} // namespace accel::rt
