// Events as protocol buffers, by hand: a handful of fields.

#include "EventFile.h"

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace accel::rt {
namespace {

/// Fields of Event, Summary, Summary.Value and SessionLog.
enum Field {
  kWallTime = 1,
  kStep = 2,
  kFileVersion = 3,
  kSummary = 5,
  kSessionLog = 7,
  kValue = 1,
  kTag = 1,
  kSimpleValue = 2,
  kStatus = 1
};
constexpr uint64_t kStart = 1; // SessionLog.START

template <class T> void addFixed(std::string &text, T value) {
  for (size_t byte = 0; byte < sizeof value; ++byte)
    text += static_cast<char>(value >> (8 * byte));
}

void addVarint(std::string &text, uint64_t value) {
  for (; value >= 0x80; value >>= 7)
    text += static_cast<char>(value | 0x80);
  text += static_cast<char>(value);
}

/// The wire types of protocol buffers.
enum Wire { Varint = 0, Fixed64 = 1, Bytes = 2, Fixed32 = 5 };

void addKey(std::string &text, Field field, Wire wire) {
  addVarint(text, static_cast<uint64_t>(field) << 3 | wire);
}

void addNumber(std::string &text, Field field, uint64_t value) {
  addKey(text, field, Varint);
  addVarint(text, value);
}

void addBytes(std::string &text, Field field, const std::string &bytes) {
  addKey(text, field, Bytes);
  addVarint(text, bytes.size());
  text += bytes;
}

void addDouble(std::string &text, Field field, double value) {
  uint64_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  addKey(text, field, Fixed64);
  addFixed(text, bits);
}

void addFloat(std::string &text, Field field, float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  addKey(text, field, Fixed32);
  addFixed(text, bits);
}

std::string eventAt(double time, int64_t step) {
  std::string event;
  addDouble(event, kWallTime, time);
  addNumber(event, kStep, static_cast<uint64_t>(step));
  return event;
}

void addScalar(std::string &summary, const std::string &tag, double number) {
  std::string value;
  addBytes(value, kTag, tag);
  addFloat(value, kSimpleValue, static_cast<float>(number));
  addBytes(summary, kValue, value);
}

double now() {
  return std::chrono::duration<double>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

/// Of a record's bytes, as records have it: one that is not the checksum of
/// bytes that hold their own.
uint32_t maskedCrc(const std::string &bytes) {
  uint32_t crc = crc32c(bytes);
  return (crc >> 15 | crc << 17) + 0xa282ead8U;
}

} // namespace

uint32_t crc32c(const std::string &bytes) {
  static const std::array<uint32_t, 256> table = [] {
    std::array<uint32_t, 256> made = {};
    for (uint32_t byte = 0; byte < made.size(); ++byte) {
      uint32_t crc = byte;
      for (int bit = 0; bit < 8; ++bit)
        crc =
            crc >> 1 ^ (crc & 1 ? 0x82f63b78U : 0); // the polynomial, reversed
      made[byte] = crc;
    }
    return made;
  }();
  uint32_t crc = ~0U;
  for (char byte : bytes)
    crc = crc >> 8 ^ table[(crc ^ static_cast<unsigned char>(byte)) & 0xff];
  return ~crc;
}

EventFile::~EventFile() {
  if (descriptor >= 0)
    close(descriptor);
}

Status EventFile::open(const std::string &folder, const RunStart &run) {
  auto fail = [](const char *what, const std::string &name) {
    int error = errno;
    return Status::error(std::string("cannot ") + what + " " + inQuotes(name) +
                         " for TensorBoard: " + std::strerror(error));
  };
  if (mkdir(folder.c_str(), 0777) != 0 && errno != EEXIST)
    return fail("make the folder", folder);
  double time = now();
  char host[256] = "";
  if (gethostname(host, sizeof host - 1) != 0 || std::strchr(host, '/'))
    std::strcpy(host, "host");
  // TensorBoard reads files whose names have "tfevents" in the order of their
  // names.
  char second[32];
  std::snprintf(second, sizeof second, "%010lld", static_cast<long long>(time));
  path = folder + "/events.out.tfevents." + second + "." + host + "." +
         std::to_string(getpid()) + ".0";
  descriptor =
      ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (descriptor < 0)
    return fail("make", path);
  std::string version;
  addDouble(version, kWallTime, time);
  addBytes(version, kFileVersion, "brain.Event:2");
  ACCEL_RT_RETURN_IF_ERROR(write(version));
  if (!run.resumes)
    return Status();
  std::string start = eventAt(time, run.firstStep + 1), log;
  addNumber(log, kStatus, kStart);
  addBytes(start, kSessionLog, log);
  return write(start);
}

Status EventFile::add(const ToldStep &told) {
  const StepResult &step = told.result;
  std::string summary;
  // Under the names that people know from elsewhere.
  for (const Report &report : step.reports)
    addScalar(summary,
              "train/" + (report.name == "lr" ? "learning_rate" : report.name),
              report.value);
  if (told.skipped)
    addScalar(summary, "train/skipped_steps",
              static_cast<double>(told.skipped));
  addScalar(summary, std::string("train/") + told.unit() + "_per_second",
            told.unitsPerSecond());
  if (step.epoch)
    addScalar(summary, "train/epoch", *step.epoch);
  if (step.evalLoss)
    addScalar(summary, "eval/loss", *step.evalLoss);
  std::string event = eventAt(step.time, step.step);
  addBytes(event, kSummary, summary);
  return write(event);
}

/// A record: its length and its bytes, each with its checksum.
Status EventFile::write(const std::string &event) {
  std::string length, record;
  addFixed(length, static_cast<uint64_t>(event.size()));
  record = length;
  addFixed(record, maskedCrc(length));
  record += event;
  addFixed(record, maskedCrc(event));
  off_t before = lseek(descriptor, 0, SEEK_END);
  for (size_t done = 0; done < record.size();) {
    ssize_t count =
        ::write(descriptor, record.data() + done, record.size() - done);
    if (count < 0 && errno == EINTR)
      continue;
    if (count < 0) {
      int error = errno;
      if (before >= 0)
        (void)!ftruncate(descriptor, before); // no half record stays
      return Status::error("cannot write " + inQuotes(path) +
                           " for TensorBoard: " + std::strerror(error));
    }
    done += static_cast<size_t>(count);
  }
  return Status();
}

} // namespace accel::rt
