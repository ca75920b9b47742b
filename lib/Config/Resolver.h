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
  /// Ranks, and how they divide between dp_replicate and dp_shard.
  llvm::Error settleMesh();
  /// train_batch_size = micro-batch x micro-batches x ranks.
  llvm::Error settleBatch();
  llvm::Error settleRest();
  llvm::Error fillConfig();

  Config takeConfig() { return std::move(config); }

private:
  llvm::Error readSets();
  llvm::Error claimMeshFlag();
  llvm::Error claimSet(llvm::StringRef name, llvm::StringRef value);
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
  int64_t replicas = 1, shards = 1; ///< what settleMesh finds
};

} // namespace accel::config

#endif // ACCEL_LIB_CONFIG_RESOLVER_H
