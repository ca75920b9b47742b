// Posting calls, and waiting for their answers or for the run's end.

#include "Client/Caller.h"

#include "Base/SystemError.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace accel::rt {
namespace {

using Clock = std::chrono::steady_clock;

/// How long a wait sleeps before it looks for messages.
constexpr int kCallMilliseconds = 20;
/// Looks at the answer before the caller gives its core away.
constexpr int kSpin = 200;

const char *callName(CallKind kind) {
  constexpr const char *names[] = {"load",       "step",        "eval",
                                   "forward",    "get weights", "set weights",
                                   "checkpoint", "end"};
  return names[static_cast<uint32_t>(kind)];
}

} // namespace

Caller::Caller(const AccelOptions *options) {
  if (!options)
    return;
  warn = options->warn;
  progress = options->progress;
  context = options->context;
}

Caller::~Caller() {
  // In order where nothing is at hand; else the end of the socket says it.
  if (board && !isOver && !isPending && process.isOwner()) {
    board->kind = static_cast<uint32_t>(CallKind::End);
    board->posted.fetch_add(1);
    wakeWaiters(board->posted);
    while (readMessages(kCallMilliseconds)) {
    }
  }
  process.closeSocket();
  (void)process.collect();
  for (Mapping &each : files) {
    if (each.base)
      munmap(each.base, each.bytes);
    if (each.file >= 0)
      close(each.file);
  }
}

AccelStatus Caller::refuse(std::string why) {
  said = std::move(why);
  return ACCEL_REFUSED;
}

AccelStatus Caller::end(std::string why) {
  isOver = true;
  isPending = false;
  said = lastError = std::move(why);
  process.closeSocket();
  (void)process.collect();
  return ACCEL_ENDED;
}

AccelStatus Caller::open(const char *executable, const AccelOptions *options) {
  program = findProgram(options ? options->program : nullptr);
  std::vector<std::string> words;
  for (const char *const *word = options ? options->words : nullptr;
       word && *word; ++word)
    words.push_back(*word);
  words.push_back(executable);
  if (Status status = process.start(program, std::move(words)); !status.ok())
    return end(status.message());
  isPending = true;
  return ACCEL_DONE;
}

AccelStatus Caller::start(CallKind kind, uint32_t flags, const char *folder) {
  if (!process.isOwner() && process.socket() >= 0)
    return refuse("expected a call by the process that has loaded the run, "
                  "found one by a process that it has forked: load it there");
  if (isOver) {
    said = "the run is over: " + lastError;
    return ACCEL_ENDED;
  }
  if (isPending)
    return refuse("expected the end of a call before the next one, found that "
                  "it is still at hand: wait for it first");
  if (kind < CallKind::GetWeights &&
      !(board->calls & 1u << static_cast<uint32_t>(kind)))
    return refuse("expected an executable with the entry '" +
                  std::string(callName(kind)) +
                  "', found one without: compile it with " + callName(kind) +
                  " among --entries");
  if (kind == CallKind::Save && !board->trains)
    return refuse("expected an executable that trains, to save a checkpoint, "
                  "found one that does not: save its weights");
  size_t length = folder ? std::strlen(folder) : 0;
  if (kind == CallKind::Save && (length == 0 || length >= sizeof board->text))
    return refuse("expected the path of a folder of 1 to " +
                  std::to_string(sizeof board->text - 1) + " bytes, found " +
                  std::to_string(length));
  said.clear();
  std::memcpy(board->text, folder ? folder : "", length + 1);
  board->kind = static_cast<uint32_t>(kind);
  board->flags = flags;
  board->outcome = static_cast<uint32_t>(CallOutcome::Done);
  board->verdict = 0;
  board->nanoseconds = 0;
  board->message[0] = '\0';
  isPending = true;
  board->posted.fetch_add(1);
  wakeWaiters(board->posted);
  return ACCEL_DONE;
}

AccelStatus Caller::wait(double seconds) {
  if (isOver) {
    said = "the run is over: " + lastError;
    return ACCEL_ENDED;
  }
  if (!isPending)
    return refuse("expected a call to wait for, found none");
  auto begin = Clock::now();
  auto isLate = [&] {
    return seconds >= 0 &&
           std::chrono::duration<double>(Clock::now() - begin).count() >=
               seconds;
  };
  while (!board) {
    if (!readMessages(kCallMilliseconds))
      return ACCEL_ENDED;
    if (!board && isLate())
      return ACCEL_PENDING;
  }
  for (int look = 0;; ++look) {
    uint32_t before = board->answered.load();
    if (before == board->posted.load())
      return answer();
    if (look < kSpin) {
      pauseCore();
      continue;
    }
    waitWhile(board->answered, before, kCallMilliseconds);
    if (board->answered.load() == board->posted.load())
      return answer();
    if (!readMessages(0))
      return ACCEL_ENDED;
    if (isLate())
      return ACCEL_PENDING;
  }
}

AccelStatus Caller::answer() {
  isPending = false;
  if (!readMessages(0)) // what was said of the call; or it was the last
    return ACCEL_ENDED;
  if (board->outcome == static_cast<uint32_t>(CallOutcome::Refused))
    return refuse(board->message);
  return ACCEL_DONE;
}

bool Caller::readMessages(int milliseconds) {
  for (Message message;;) {
    switch (receiveMessage(process.socket(), milliseconds, message)) {
    case Received::Nothing:
      return true;
    case Received::End: {
      // An error is the last message; without one it has ended by force.
      process.closeSocket();
      std::string how = process.collect();
      (void)end(lastError.empty() ? inQuotes(program) + ", " + how : lastError);
      return false;
    }
    case Received::Message:
      hear(message);
    }
    if (message.kind == MessageKind::Board)
      return !isOver; // there is something else to wait for
  }
}

void Caller::hear(const Message &message) {
  switch (message.kind) {
  case MessageKind::Warning:
    if (warn)
      warn(context, message.text.c_str());
    return;
  case MessageKind::Progress:
    if (progress)
      progress(context, message.text.c_str());
    return;
  case MessageKind::Error:
    lastError = message.text;
    return;
  case MessageKind::Board:
    if (Status status = takeBoard(message); !status.ok())
      (void)end(status.message());
    return;
  }
}

Status Caller::map(int file, Mapping &mapping) {
  struct stat info = {};
  mapping.file = file;
  void *base = MAP_FAILED;
  if (fstat(file, &info) == 0 && info.st_size == 0)
    return Status(); // there is no weight
  if (info.st_size > 0)
    base = mmap(nullptr, static_cast<size_t>(info.st_size),
                PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (base == MAP_FAILED)
    return Status::error("cannot map the memory of " + inQuotes(program) +
                         ": " + systemError(errno));
  mapping.base = static_cast<char *>(base);
  mapping.bytes = static_cast<uint64_t>(info.st_size);
  return Status();
}

Status Caller::takeBoard(const Message &message) {
  for (int i = 0; i < 2; ++i)
    ACCEL_RT_RETURN_IF_ERROR(map(message.descriptors[i], files[i]));
  auto *found = reinterpret_cast<CallBoard *>(files[0].base);
  if (files[0].bytes < sizeof(CallBoard) || found->magic != CallBoard::kMagic ||
      found->version != kCallVersion)
    return Status::error("expected " + inQuotes(program) +
                         " to answer calls of version " +
                         std::to_string(kCallVersion) +
                         ", found another: the library and acc-run are of "
                         "different builds");
  board = found;
  readRows();
  return Status();
}

void Caller::readRows() {
  for (uint64_t i = 0; i < board->numRows; ++i) {
    const TensorRow &row = board->rows()[i];
    const Mapping &file = files[row.kind == TensorRow::Weight];
    AccelTensor tensor = {};
    tensor.name = files[0].base + row.name;
    tensor.type = static_cast<AccelType>(row.dtype);
    tensor.rank = row.rank;
    tensor.shape = row.shape;
    tensor.data = file.base + row.offset;
    tensor.bytes = row.bytes;
    tensor.calls = row.calls;
    tensor.isRowMask = row.isRowMask != 0;
    rows[row.kind].push_back(tensor);
  }
}

int Caller::memory(int which, uint64_t *bytes) const {
  const Mapping &file = files[which != 0];
  if (bytes)
    *bytes = file.bytes;
  return file.file;
}

uint64_t Caller::offset(const AccelTensor &tensor) const {
  char *data = static_cast<char *>(tensor.data);
  bool isWeight = files[1].base && data >= files[1].base &&
                  data < files[1].base + files[1].bytes;
  return static_cast<uint64_t>(data - files[isWeight].base);
}

AccelInfo Caller::info() const {
  AccelInfo info = {};
  if (!board)
    return info;
  info.ranks = board->ranks;
  info.threads = board->threads;
  info.steps = board->steps.load();
  info.samples = board->samples;
  info.tokens = board->tokens;
  info.calls = board->calls | 1u << ACCEL_GET_WEIGHTS |
               1u << ACCEL_SET_WEIGHTS | (board->trains ? 1u << ACCEL_SAVE : 0);
  return info;
}

AccelStep Caller::result() const {
  AccelStep step = {};
  if (!board)
    return step;
  step.step = board->steps.load();
  step.loss = board->loss;
  step.verdict = static_cast<AccelVerdict>(board->verdict.load());
  step.seconds = static_cast<double>(board->nanoseconds.load()) * 1e-9;
  return step;
}

size_t Caller::numReports() const { return board ? board->numReports : 0; }

AccelReport Caller::report(size_t index) const {
  const ReportRow &row = board->reports[index];
  return {row.name, static_cast<AccelType>(row.dtype), row.value};
}

void Caller::dropWeights() {
  if (files[1].base)
    (void)fallocate(files[1].file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                    0, static_cast<off_t>(files[1].bytes));
}

} // namespace accel::rt
