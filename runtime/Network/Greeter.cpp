// One loop over doors, strangers and attempts.

#include "Network/Greeter.h"

#include "Base/StartThread.h"

#include <algorithm>
#include <cerrno>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

namespace accel::rt {
namespace {

/// Connections that may wait to be asked for, of which so many are in a turn.
constexpr int kMostWaiting = 4096, kMostInTurn = 64;
/// Between two attempts of one address, and where the system has no files left.
constexpr std::chrono::milliseconds kPause{20};

/// A part of the files that a process may have open.
size_t shareOfFiles() {
  rlimit limit = {};
  return getrlimit(RLIMIT_NOFILE, &limit) == 0
             ? static_cast<size_t>(limit.rlim_cur / 4)
             : 64;
}

bool isOutOfFiles(int error) {
  return error == EMFILE || error == ENFILE || error == ENOBUFS ||
         error == ENOMEM;
}

} // namespace

Greeter::Greeter(const Secret &secret, Options given, IsWelcome isWelcome)
    : secret(secret), options(given), isWelcome(std::move(isWelcome)) {
  options.mostStrangers = std::max<size_t>(
      1, std::min<size_t>(options.mostStrangers, shareOfFiles()));
}

Status Greeter::start(std::vector<Socket> given) {
  doors = std::move(given);
  for (const Socket &door : doors)
    if (listen(door.get(), kMostWaiting) != 0)
      return Status::error("cannot listen for other machines: " +
                           systemError(errno));
  bell = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  if (bell < 0)
    return Status::error("cannot listen for other machines: " +
                         systemError(errno));
  return startThread(threads, "the thread that greets other machines",
                     [this] { run(); });
}

void Greeter::stop() {
  if (!threads.empty()) {
    {
      std::lock_guard<std::mutex> lock(mutex);
      isStopping = true;
    }
    eventfd_write(bell, 1);
    threads[0].join();
    threads.clear();
  }
  // Another process may have them too, in which they listen no more either.
  for (const Socket &door : doors)
    shutdown(door.get(), SHUT_RDWR);
  doors.clear();
  strangers.clear();
  attempts.clear();
  if (bell >= 0)
    close(std::exchange(bell, -1));
}

size_t Greeter::tryOut(const Hello &hello, const Endpoint &there) {
  std::lock_guard<std::mutex> lock(mutex);
  size_t number = results.attempts.size();
  results.attempts.push_back({hello, there, false, Socket(), 0});
  Clock::time_point now = Clock::now();
  wanted.push_back({number, hello, there, now + options.patience, now, Socket(),
                    std::nullopt});
  eventfd_write(bell, 1);
  return number;
}

bool Greeter::wait(std::chrono::milliseconds most,
                   const std::function<bool(const Results &)> &areAsWanted) {
  std::unique_lock<std::mutex> lock(mutex);
  return changed.wait_for(lock, most, [&] { return areAsWanted(results); });
}

void Greeter::run() {
  std::vector<pollfd> polled;
  for (;;) {
    Clock::time_point now = Clock::now();
    {
      std::lock_guard<std::mutex> lock(mutex);
      if (isStopping)
        return;
      for (Attempt &attempt : wanted)
        attempts.push_back(std::move(attempt));
      wanted.clear();
    }
    for (Attempt &attempt : attempts)
      if (!attempt.connecting && !attempt.greeting && attempt.next <= now)
        begin(attempt, now);
    attempts.remove_if([](const Attempt &one) { return one.isOver; });

    Clock::time_point wake = now + std::chrono::seconds(1);
    polled.assign(1, {bell, POLLIN, 0});
    bool rests = doorsRest > now;
    if (rests)
      wake = std::min(wake, doorsRest);
    for (const Socket &door : doors)
      polled.push_back({rests ? -1 : door.get(), POLLIN, 0});
    for (const Stranger &one : strangers) {
      polled.push_back({one.greeting.socket().get(), POLLIN, 0});
      wake = std::min(wake, one.until);
    }
    for (const Attempt &one : attempts) {
      polled.push_back(one.greeting
                           ? pollfd{one.greeting->socket().get(), POLLIN, 0}
                           : pollfd{one.connecting.get(), POLLOUT, 0});
      wake =
          std::min(wake, one.connecting || one.greeting ? one.until : one.next);
    }
    auto left = std::chrono::ceil<std::chrono::milliseconds>(wake - now);
    poll(polled.data(), polled.size(),
         static_cast<int>(std::max<int64_t>(0, left.count())));
    now = Clock::now();

    size_t at = 0;
    eventfd_t rung;
    if (polled[at++].revents)
      eventfd_read(bell, &rung);
    size_t atDoors = at;
    at += doors.size();
    for (auto one = strangers.begin(); one != strangers.end(); ++at)
      if (isOver(*one, now, polled[at].revents))
        one = strangers.erase(one);
      else
        ++one;
    for (Attempt &attempt : attempts)
      goOn(attempt, now, polled[at++].revents);
    attempts.remove_if([](const Attempt &one) { return one.isOver; });
    for (size_t i = 0; i < doors.size(); ++i)
      if (polled[atDoors + i].revents)
        letIn(doors[i].get(), now);
  }
}

/// Goes on with a stranger; whether it is one no more.
bool Greeter::isOver(Stranger &one, Clock::time_point now, bool isReady) {
  Greeting::State state =
      isReady ? one.greeting.goOn() : Greeting::State::Going;
  if (state == Greeting::State::Proven) {
    const Hello &hello = one.greeting.hello();
    std::lock_guard<std::mutex> lock(mutex);
    // Who comes again has lost the one before.
    results.comers[{hello.from, hello.number}] = one.greeting.takeSocket();
    changed.notify_all();
  }
  return state != Greeting::State::Going || one.until <= now;
}

void Greeter::letIn(int door, Clock::time_point now) {
  for (int turn = 0; turn < kMostInTurn; ++turn) {
    Socket came(accept4(door, nullptr, nullptr, SOCK_CLOEXEC));
    if (!came && isOutOfFiles(errno)) {
      // The door stays ready for as long as somebody waits there.
      strangers.clear();
      doorsRest = now + kPause;
    }
    if (!came)
      return;
    if (strangers.size() == options.mostStrangers)
      strangers.pop_front();
    strangers.push_back({Greeting::answer(std::move(came), secret, isWelcome),
                         now + options.strangerPatience});
    // What it said came with it.
    if (isOver(strangers.back(), now, /*isReady=*/true))
      strangers.pop_back();
  }
}

/// Connects.
void Greeter::begin(Attempt &attempt, Clock::time_point now) {
  attempt.connecting = connectTo(attempt.there);
  if (!attempt.connecting)
    tryAgain(attempt, now, errno);
}

void Greeter::goOn(Attempt &attempt, Clock::time_point now, bool isReady) {
  if (attempt.connecting && isReady) {
    int error = 0;
    socklen_t size = sizeof error;
    getsockopt(attempt.connecting.get(), SOL_SOCKET, SO_ERROR, &error, &size);
    Socket connected = std::move(attempt.connecting);
    if (error)
      return tryAgain(attempt, now, error);
    attempt.greeting.emplace(
        Greeting::ask(std::move(connected), secret, attempt.hello));
  }
  if (attempt.greeting && isReady) {
    Greeting::State state = attempt.greeting->goOn();
    if (state == Greeting::State::Refused)
      return tryAgain(attempt, now, ECONNRESET);
    if (state == Greeting::State::Proven)
      return end(attempt, attempt.greeting->takeSocket(), 0);
  }
  if (attempt.until <= now && (options.probes || !attempt.greeting))
    end(attempt, Socket(), attempt.error ? attempt.error : ETIMEDOUT);
}

/// Whoever listens there may not do so yet, or have had no room.
void Greeter::tryAgain(Attempt &attempt, Clock::time_point now, int error) {
  attempt.connecting = Socket();
  attempt.greeting.reset();
  attempt.error = error;
  attempt.next = now + kPause;
  if (now >= attempt.until || isOutOfFiles(error) ||
      (options.probes && error != ECONNRESET))
    end(attempt, Socket(), error);
}

void Greeter::end(Attempt &attempt, Socket socket, int error) {
  attempt.isOver = true;
  std::lock_guard<std::mutex> lock(mutex);
  Results::Attempt &result = results.attempts[attempt.number];
  result.isOver = true;
  result.socket = std::move(socket);
  result.error = error;
  changed.notify_all();
}

} // namespace accel::rt
