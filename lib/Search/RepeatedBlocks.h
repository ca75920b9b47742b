// A program without most of the blocks that it repeats: what plans the rest
// knows what plans the whole.

#ifndef ACCEL_LIB_SEARCH_REPEATEDBLOCKS_H
#define ACCEL_LIB_SEARCH_REPEATEDBLOCKS_H

#include "mlir/IR/BuiltinOps.h"
#include <optional>
#include <vector>

namespace accel::search {

/// Blocks of an entry that follow each other and are alike: layers, of one
/// chunk of a pipeline.
struct BlockClass {
  int64_t number;  ///< as ops say it (`getBlock`)
  int64_t removed; ///< how many blocks are gone
};

/// So many blocks of a class stay at least, two of them between others.
inline constexpr int64_t kBlocksLeft = 4;

/// Takes blocks out of the entries of a module in phase `dist`: forward,
/// backward, update, and their states. What the block behind read of them it
/// reads of the block in front, and the other way around in the backward. Ops
/// and states of blocks that stay say which they are.
///
/// Blocks are found by structure alone: stretches of ops that repeat
/// themselves, op by op, with the same types and attributes but for numbers and
/// symbols; of the same block are those of which one reads what the other
/// makes. A class is left as it is where something outside reads what would be
/// gone, or is read by nothing else.
///
/// Fails without a word, and leaves a module that is no use, where entries
/// disagree about what a block is. Returns the classes, none where nothing
/// repeats.
mlir::FailureOr<std::vector<BlockClass>>
removeRepeatedBlocks(mlir::ModuleOp module);

/// A block that stayed: the class, and its number in it, from 0; of what is
/// left over at the ends of the class, as alike as it is, the number is out of
/// range.
struct KeptBlock {
  int64_t number, index;
};

/// The block that an op was part of, by its location; of one made of ops of
/// several that of the first. None of what is in no class.
std::optional<KeptBlock> getBlock(mlir::Location location);

} // namespace accel::search

#endif // ACCEL_LIB_SEARCH_REPEATEDBLOCKS_H
