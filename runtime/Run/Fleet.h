// The processes of a run on several machines, from where one of them stands:
// each was started by mpirun or srun and keeps one rank. They open everything
// each for itself, see that they have the same, and let rank 0's oversee.

#ifndef ACCEL_RUNTIME_RUN_FLEET_H
#define ACCEL_RUNTIME_RUN_FLEET_H

#include "Control/Keeper.h"
#include "Data/AtomicFile.h"
#include "Network/Lanes.h"
#include "accel-rt/Runtime.h"

namespace accel::rt {

/// What must be the same for all processes: what it is called, and its value.
using Identity = std::vector<std::pair<std::string, std::string>>;

class Fleet {
public:
  /// Joins the network that the options name; null where ranks are those of
  /// one machine, forked by one process. Errors: the network's.
  static Status join(const RunOptions &options, std::unique_ptr<Fleet> &fleet);
  explicit Fleet(std::unique_ptr<Machines> all);

  bool leads() const { return machines->rank() == 0; }
  Machines &places() { return *machines; }
  Keeper &keeper() { return *kept; }
  /// Null: the network takes all.
  Lanes *lanes() { return direct.get(); }
  /// How messages go, for the line that says where ranks are.
  std::string describeLanes() const;

  /// Goes on where all do: called by all with what became of a part of the
  /// preparation. Errors: the first one's, after which there is nothing but
  /// finish(), of rank 0's process.
  Status agree(const Status &own);
  /// The same where `own` is well and `identity` is that of rank 0. Errors name
  /// the machine that differs.
  Status compare(const Status &own, const Identity &identity);

  /// Of files that all of them write.
  SharedName sharedName() const { return {suffix, !leads()}; }

  /// Tells the others that the run is over, where that is to be told, and
  /// leaves.
  void finish(int code);

private:
  Status leave(Status status);

  std::unique_ptr<Machines> machines;
  std::unique_ptr<Keeper> kept;
  std::unique_ptr<Lanes> direct;
  std::string whyNotDirect;
  std::string suffix;
  bool isRefused = false;
};

/// XXH3-64 of a whole file, as text. Errors: it cannot be read.
Status hashFile(int fd, const std::string &path, std::string &hash);

} // namespace accel::rt

#endif // ACCEL_RUNTIME_RUN_FLEET_H
