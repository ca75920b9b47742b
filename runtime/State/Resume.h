// A checkpoint that a run starts from: found, and held against the program,
// before any rank exists. Ranks then read their pieces of its states by byte
// ranges, as they read weights, whatever layout wrote them.

#ifndef ACCEL_RUNTIME_STATE_RESUME_H
#define ACCEL_RUNTIME_STATE_RESUME_H

#include "State/Manifest.h"
#include "State/Weights.h"

#include <functional>
#include <set>

namespace accel::rt {

class Resume {
public:
  using Warn = std::function<void(const std::string &)>;
  /// What of a checkpoint is wanted: all that training goes on with, or the
  /// parameters and buffers alone, whatever trained them, by any of their
  /// names.
  enum class Wanted { All, Weights };
  /// Opens a checkpoint, or the newest of a folder of them. Errors: there is
  /// none, it is damaged (the states' own hashes are checked as they are
  /// loaded), or it is of another program: a state is missing, unknown, or of
  /// another shape or type, or the seed is another.
  /// `warn` hears of what compression has left out of gradients, where that
  /// begins anew: it is no part of what another layout, or no compression,
  /// leaves.
  Status open(const std::string &path, const Executable &executable,
              Wanted wanted, const Warn &warn);

  /// Errors: the data would not go on where they were: other ones, or another
  /// order. `cursor` of this run; null without data. `warn` hears of a
  /// checkpoint that does not tell which data it had.
  Status checkData(const DataCursor *cursor, const Warn &warn) const;

  /// Null: the state keeps its first value.
  const SavedState *find(const std::string &state) const;
  const Manifest &manifest() const { return contents; }
  /// The checkpoint's own folder.
  const std::string &path() const { return folder; }
  int64_t step() const { return contents.step; }

private:
  Status openFiles();
  Status findByAliases(const Executable &executable,
                       std::set<std::pair<std::string, std::string>> &known);
  Status match(const StatePlan &plan, Wanted wanted) const;
  /// Forgets what compression has carried along unless it is this program's.
  void dropCompression(const Executable &executable, const Warn &warn);
  std::string folder;
  Manifest contents;
  std::unordered_map<std::string, SavedState> states; ///< By name.
  FileHandle files[kNumCheckpointFiles];
};

} // namespace accel::rt

#endif // ACCEL_RUNTIME_STATE_RESUME_H
