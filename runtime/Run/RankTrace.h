// One rank's tape as events of a trace: its process, a thread for each of its
// streams, and on each thread calls around runs of bodies around commands
// around waits for others.

#ifndef ACCEL_RUNTIME_RUN_RANKTRACE_H
#define ACCEL_RUNTIME_RUN_RANKTRACE_H

#include "Data/AtomicFile.h"
#include "Execute/Tape.h"
#include "accel-rt/PlanFormat.h"

namespace accel::rt {

/// Text on its way to a file; errors are told at the end.
class TextFile {
public:
  explicit TextFile(const AtomicFile &file) : file(file) {}
  void add(const std::string &text);
  Status finish();

private:
  void flush();
  const AtomicFile &file;
  std::string buffer;
  uint64_t written = 0;
  Status status;
};

class RankTrace {
public:
  /// Steps are numbered from `finishedSteps` + 1. Times count from `origin`;
  /// what never ended did so at `end`.
  RankTrace(const Executable &plan, int64_t rank, const Tape &tape,
            int64_t finishedSteps, int64_t origin, int64_t end);

  /// Adds the events, a line each; of all ranks those of rank 0 come first.
  void write(TextFile &out) const;

private:
  /// What never changes of a command's spans.
  struct CommandText {
    size_t body;
    std::string name, category, node, arguments;
  };
  /// A command that was executed, and its waits.
  struct Done {
    const TapeSpan *span;
    std::vector<const TapeSpan *> waits;
  };
  static CommandText describe(const Command &command, size_t body);
  std::vector<Done> find(size_t stream) const;
  bool isSameRun(const TapeSpan &one, const TapeSpan &next) const;
  int64_t endOf(const TapeSpan &span) const {
    return span.end ? span.end : end;
  }
  void writeNames(TextFile &out) const;
  void writeStream(size_t stream, TextFile &out) const;
  void writeCommand(const Done &done, TextFile &out) const;
  void writeSpan(const std::string &name, const std::string &category,
                 size_t stream, int64_t from, int64_t to,
                 const std::string &arguments, TextFile &out) const;
  std::string place(size_t stream) const;

  const Executable &plan;
  const Program &program;
  int64_t rank;
  const Tape &tape;
  int64_t origin, end;
  std::vector<CommandText> commands; ///< By Work::number.
  std::vector<std::string> streams;  ///< As the executor's.
  std::vector<std::string> callNames;
};

} // namespace accel::rt

#endif // ACCEL_RUNTIME_RUN_RANKTRACE_H
