// Bytes that a rank sends in each kind of exchange, over the link's figures.

#include "Exchange.h"

#include "llvm/Support/ErrorHandling.h"

using namespace accel::cost;

double accel::cost::getSeconds(Exchange kind, double ranks, double bytes,
                               const Link &link) {
  double others = (ranks - 1) / ranks;
  switch (kind) {
  case Exchange::AllSlice:
    // Dearer than nothing, cheaper than any message.
    return kMachine.copy.getSeconds(bytes / ranks);
  case Exchange::AllGather:
    return link.getSeconds(bytes * (ranks - 1));
  case Exchange::AllToAll:
  case Exchange::ReduceScatter:
    return link.getSeconds(bytes * others);
  case Exchange::Permute:
    return link.getSeconds(bytes);
  case Exchange::AllReduce:
    return 2 * link.getSeconds(bytes * others);
  }
  llvm_unreachable("all kinds are listed");
}
