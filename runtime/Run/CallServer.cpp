// Laying out the two files that a calling program and the ranks share.

#include "Run/CallServer.h"

#include "Base/PageCursor.h"
#include "Base/SystemError.h"
#include "Feed/InputOutput.h"
#include "Format/EntryTensors.h"
#include "Run/StepReports.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <poll.h>
#include <sys/mman.h>
#include <unistd.h>

namespace accel::rt {
namespace {

constexpr std::pair<CallKind, const char *> kEntries[] = {
    {CallKind::Step, "step"},
    {CallKind::Eval, "eval"},
    {CallKind::Forward, "forward"}};

uint32_t bitOf(CallKind kind) { return 1u << static_cast<uint32_t>(kind); }

uint64_t bytesOf(DType dtype, const std::vector<int64_t> &shape) {
  return static_cast<uint64_t>(numElements(shape)) *
         static_cast<uint64_t>(dtypeBytes(dtype));
}

/// The next place for a whole tensor, which no other has, be it empty.
TensorRange takeRange(PageCursor &cursor, const char *what, DType dtype,
                      const std::vector<int64_t> &shape) {
  uint64_t offset = cursor.take(std::max<uint64_t>(1, bytesOf(dtype, shape)));
  return {-1, what, offset, dtype, shape, rowMajorStrides(shape)};
}

/// Errors: a row has no room for the shape.
Status makeRow(TensorRow::Kind kind, const std::string &name,
               const TensorRange &range, uint32_t calls, TensorRow &row) {
  if (range.shape.size() > std::size(row.shape))
    return Status::error("expected at most " +
                         std::to_string(std::size(row.shape)) +
                         " dimensions of " + inQuotes(name) + ", found " +
                         shapeText(range.shape));
  row.kind = kind;
  row.dtype = static_cast<uint32_t>(range.dtype);
  row.calls = calls;
  row.rank = static_cast<uint32_t>(range.shape.size());
  std::copy(range.shape.begin(), range.shape.end(), row.shape);
  row.offset = range.offset;
  row.bytes = bytesOf(range.dtype, range.shape);
  return Status();
}

/// A file in memory, which has no name that could stay behind.
Status makeFile(const char *what, uint64_t bytes, FileHandle &file) {
  file = FileHandle(memfd_create(what, MFD_CLOEXEC));
  if (!file || ftruncate(file.get(), static_cast<off_t>(bytes)) != 0)
    return Status::error("cannot make " + std::to_string(bytes) +
                         " bytes of memory that the calling program shares: " +
                         systemError(errno));
  return Status();
}

} // namespace

CallServer::CallServer(int socket) : socket(socket), caller(getppid()) {}

CallServer::~CallServer() {
  if (shared)
    munmap(shared, boardBytes);
}

Status CallServer::layOut(const Executable &executable,
                          std::vector<NamedRow> &rows) {
  // Which calls read and write what; by name, which entries share.
  std::unordered_map<std::string, uint32_t> reads, writes;
  for (auto [kind, name] : kEntries) {
    EntryTensors tensors = tensorsOf(executable, name);
    for (const TensorPlan &input : tensors.inputs)
      reads[input.name] |= bitOf(kind);
    for (const TensorPlan &output : tensors.outputs)
      if (!isReport(executable, output.name))
        writes[output.name] |= bitOf(kind);
  }
  auto addRow = [&](TensorRow::Kind kind, const std::string &name,
                    const TensorRange &range, uint32_t calls) {
    rows.push_back({name});
    return makeRow(kind, name, range, calls, rows.back().row);
  };
  // Offsets count from where tensors begin; what is before them, only their
  // names and number tell.
  PageCursor tensors, values;
  for (const TensorPlan &input : executable.inputs) {
    if (!reads.count(input.name))
      continue;
    TensorRange range =
        takeRange(tensors, "the batch", input.dtype, input.shape);
    ACCEL_RT_RETURN_IF_ERROR(
        addRow(TensorRow::Input, input.name, range, reads[input.name]));
    rows.back().row.isRowMask =
        executable.rowMask && input.name == executable.rowMask->input;
    inputTensors.push_back({input.name, std::move(range)});
  }
  for (const TensorPlan &output : executable.outputs) {
    if (!writes.count(output.name))
      continue;
    const std::vector<int64_t> &shape = outerShape(executable, output);
    TensorRange range = takeRange(tensors, "the outputs", output.dtype, shape);
    std::vector<std::string> names = otherNames(executable, output.name);
    names.insert(names.begin(), output.name);
    for (const std::string &name : names)
      ACCEL_RT_RETURN_IF_ERROR(
          addRow(TensorRow::Output, name, range, writes[output.name]));
    outputTensors.push_back({output.name, std::move(range)});
  }
  for (const StatePlan &state : executable.states) {
    std::optional<TensorRange> &range = weights.emplace_back();
    if (state.role != "parameter" && state.role != "buffer")
      continue;
    const std::vector<int64_t> &shape = state.valueShape();
    range = takeRange(values, "the weights", state.dtype, shape);
    std::vector<std::string> names = state.aliases;
    names.insert(names.begin(), state.name);
    for (const std::string &name : names)
      ACCEL_RT_RETURN_IF_ERROR(addRow(TensorRow::Weight, name, *range, 0));
  }
  PageCursor front;
  front.take(sizeof(CallBoard));
  front.take(rows.size() * sizeof(TensorRow));
  uint64_t names = 0;
  for (const NamedRow &each : rows)
    names += each.name.size() + 1;
  namesAt = front.take(names);
  uint64_t begin = front.bytes;
  for (std::vector<OpenTensor> *all : {&inputTensors, &outputTensors})
    for (OpenTensor &tensor : *all)
      tensor.range.offset += begin;
  for (NamedRow &each : rows)
    if (each.row.kind != TensorRow::Weight)
      each.row.offset += begin;
  boardBytes = begin + tensors.bytes;
  weightBytes = values.bytes;
  return Status();
}

Status CallServer::makeFiles() {
  ACCEL_RT_RETURN_IF_ERROR(makeFile("acc batch", boardBytes, boardFile));
  ACCEL_RT_RETURN_IF_ERROR(makeFile("acc weights", weightBytes, weightFile));
  for (std::vector<OpenTensor> *all : {&inputTensors, &outputTensors})
    for (OpenTensor &tensor : *all)
      tensor.range.fd = boardFile.get();
  for (std::optional<TensorRange> &range : weights)
    if (range)
      range->fd = weightFile.get();
  void *mapping = mmap(nullptr, boardBytes, PROT_READ | PROT_WRITE, MAP_SHARED,
                       boardFile.get(), 0);
  if (mapping == MAP_FAILED)
    return Status::error(
        "cannot map " + std::to_string(boardBytes) +
        " bytes that the calling program shares: " + systemError(errno));
  shared = new (mapping) CallBoard;
  return Status();
}

void CallServer::fill(const Executable &executable, int64_t threads,
                      const std::vector<NamedRow> &rows) {
  CallBoard &board = *shared;
  board.trains = executable.isTraining();
  for (auto [kind, name] : kEntries)
    if (executable.hasEntry(name))
      board.calls |= bitOf(kind);
  board.ranks = executable.numRanks();
  board.threads = threads;
  static_assert(std::size(CallBoard().reports) == kMaxReports &&
                sizeof ReportRow().name == kMaxReportName + 1);
  for (const ReportPlan &report : executable.reports) {
    ReportRow &row = board.reports[board.numReports++];
    std::strcpy(row.name, report.name.c_str()); // validated
    row.dtype = static_cast<uint32_t>(report.dtype);
  }
  StepResult step;
  countSamples(tensorsOf(executable, "step").inputs, step);
  board.samples = step.samples;
  board.tokens = step.tokens;
  board.rowsAt =
      PageCursor::kPage *
      ((sizeof(CallBoard) + PageCursor::kPage - 1) / PageCursor::kPage);
  board.numRows = rows.size();
  board.bytes = boardBytes;
  board.weightBytes = weightBytes;
  char *base = reinterpret_cast<char *>(shared);
  TensorRow *row = reinterpret_cast<TensorRow *>(base + board.rowsAt);
  uint64_t name = namesAt;
  for (const NamedRow &each : rows) {
    *row = each.row;
    row->name = name;
    if (row->isRowMask)
      std::memset(base + row->offset, 1, row->bytes);
    std::memcpy(base + name, each.name.c_str(), each.name.size() + 1);
    name += each.name.size() + 1;
    ++row;
  }
  // The first call is to load, and nobody has to post it.
  board.kind = static_cast<uint32_t>(CallKind::Load);
  board.posted = 1;
}

Status CallServer::create(const Executable &executable, int64_t threads) {
  std::vector<NamedRow> rows;
  ACCEL_RT_RETURN_IF_ERROR(layOut(executable, rows));
  ACCEL_RT_RETURN_IF_ERROR(makeFiles());
  fill(executable, threads, rows);
  return Status();
}

void CallServer::tellBoard() const {
  Message message;
  message.kind = MessageKind::Board;
  message.descriptors[0] = boardFile.get();
  message.descriptors[1] = weightFile.get();
  (void)sendMessage(socket, message); // whoever is gone is missed later
}

bool CallServer::isCallerGone(int milliseconds) const {
  // A process that the caller has forked may keep the socket open.
  if (getppid() != caller)
    return true;
  pollfd entry = {socket, POLLRDHUP, 0};
  return poll(&entry, 1, milliseconds) > 0;
}

} // namespace accel::rt
