// What the model knows of a command: its name for errors, and the bytes that it
// reads and writes, which are its views (accel-rt/CommandFormat.h says of each
// whether it is read, written or both).

#ifndef ACCEL_TEST_MODELDEVICE_COMMANDINFO_H
#define ACCEL_TEST_MODELDEVICE_COMMANDINFO_H

#include "ByteRuns.h"
#include "accel-rt/Streams.h"

namespace accel::rt::model {

/// A view of a command, in the order in which tasks get addresses.
struct ViewAccess {
  Access access;
  int64_t number; ///< Of its buffer.
  ByteRuns runs;
  std::string buffer;
  /// The buffer by which what is read must have been written: the view's own,
  /// or the one whose bytes that shares. -1: any.
  int64_t root = -1;
  /// What it holds is no value: it may be read before it is written.
  bool isScratch = false;
  /// Where it is in the arena of a space, of a rank whose coordinates are 0.
  std::string space = {};
  Place inArena = {};
};

struct CommandInfo {
  std::string kind, node, stream;
  std::vector<ViewAccess> views;
  /// Of what it releases: these bytes are overwritten, and not to be read.
  std::vector<ViewAccess> releases;
  std::string body = {};
  bool isCollective = false;
  bool isFile = false; ///< It reads or writes files.
  /// Of a record or wait the number of the record; -1 of others.
  int64_t record = -1;

  /// "gemm for node 'MatMul#1' (body 'forward', stream 'compute')"
  std::string describe() const;
};

/// Of a command of a program; without one nothing is known of its buffers.
CommandInfo describeCommand(const Command &command, const Program *program);

/// Of every command of a program, by Work::number: those of a body follow each
/// other.
std::vector<CommandInfo> describeProgram(const Program &program);

} // namespace accel::rt::model

#endif // ACCEL_TEST_MODELDEVICE_COMMANDINFO_H
