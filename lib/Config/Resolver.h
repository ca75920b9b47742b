// The state of one resolution, shared by its steps.

#ifndef ACCEL_LIB_CONFIG_RESOLVER_H
#define ACCEL_LIB_CONFIG_RESOLVER_H

#include "lib/Config/ClaimFile.h"

namespace accel::config {

/// Reads, claims, settles. The steps are called in the order in which they
/// stand here; each needs those before it.
class Resolver {
public:
  explicit Resolver(const Request &request) : request(request) {}

  llvm::Error readAll();
  llvm::Error claimFlags();
  /// Ranks, and how they divide between the axes of the mesh.
  llvm::Error settleMesh();
  /// train_batch_size = micro-batch x micro-batches x ranks.
  llvm::Error settleBatch();
  /// The schedule of a pipeline, where a file says how many chunks a rank has.
  llvm::Error settleChunks();
  llvm::Error settleRest();
  /// Marks what files say of scalers as not read.
  void setScalersIdle();
  /// And what they say of fp8.
  void setFp8Idle();
  llvm::Error fillConfig();

  Config takeConfig() { return std::move(config); }

private:
  llvm::Error readSets();
  /// Lets `--set` stand in the place of values that are refused.
  void beatRefused(File &file);
  llvm::Error claimMeshFlag();
  llvm::Error settleModelAxes();
  llvm::Error settleRanks();
  std::string describeDataRanks() const;
  /// Groups of ranks that keep a second copy of the parameters.
  llvm::Error checkGroups();
  llvm::Error checkExperts();
  /// Lets go of what an optimizer or a schedule that `--set` has said does not
  /// read of the file that it beats.
  void dropUnread();
  void derive(llvm::StringRef name, int64_t value, const llvm::Twine &why);
  void claimSets();
  /// Settles an integer and puts it into the result; none if nothing says it.
  llvm::Expected<std::optional<int64_t>> settleInteger(llvm::StringRef name);
  llvm::Error settleInto(llvm::StringRef name);
  /// Where `name` was said, for a message; a flag if no file said it.
  Place placeOf(llvm::StringRef name) const;
  const Resolved *find(llvm::StringRef name) const;

  const Request &request;
  std::vector<File> files;
  Ledger ledger;
  Layout layout;
  Config config;
  std::vector<std::pair<std::string, std::string>> sets, pathSets;
  // What settleMesh finds.
  int64_t replicas = 1, shards = 1;
  int64_t dataRanks = 1; ///< over which rows of the batch are divided
  /// The axes above 1 whose ranks share rows, in the order of ranks; their
  /// product, and "cp x tp".
  std::vector<std::pair<std::string, int64_t>> modelAxes;
  int64_t modelRanks = 1;
  int64_t expertRanks = 1; ///< of them, those that have rows of their own
  std::string modelNames;
};

} // namespace accel::config

#endif // ACCEL_LIB_CONFIG_RESOLVER_H
