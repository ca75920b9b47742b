// Import of losses.

#include "../OpTable.h"

using namespace mlir;
using namespace accel;
using namespace accel::import;

using Importer = NodeImporter;

/// scores [N, C, d…], labels [N, d…]: classes move to the end, one loss a
/// label. The mean is over the labels that count.
static LogicalResult importCrossEntropy(Importer &n) {
  std::string reduction = n.stringAttr("reduction", "mean");
  bool ignores = n.hasAttribute("ignore_index");
  int64_t ignored = n.intAttr("ignore_index", -100);
  Value logits = n.operand(0), labels = n.operand(1);
  if (n.operand(2))
    return n.error() << "operand #2 ('weights') is not supported";
  if (n.wantsResult(1))
    return n.error() << "result 'log_prob' is not supported";
  if (reduction != "mean" && reduction != "sum" && reduction != "none")
    return n.error() << "expected 'reduction' to be 'none', 'sum' or 'mean', "
                        "found '"
                     << reduction << "'";
  int64_t rank = Importer::rank(logits);
  if (rank < 2)
    return n.error() << "expected scores of rank 2 or more, found "
                     << logits.getType();
  if (rank > 2) {
    SmallVector<int64_t> permutation{0};
    llvm::append_range(permutation, llvm::seq<int64_t>(2, rank));
    permutation.push_back(1);
    logits = n.transpose(logits, permutation);
  }
  Value losses = n.create<nn::CrossEntropyOp>({logits, labels},
                                              n.named("ignore_index", ignored));
  if (!losses || reduction == "none")
    return n.finish(losses);
  SmallVector<int64_t> dims =
      llvm::to_vector(llvm::seq<int64_t>(Importer::rank(losses)));
  if (reduction == "mean" && !ignores)
    return n.finish(n.mean(losses, dims, /*keepDims=*/false));
  Value sum = n.reduce(nn::ReductionKind::sum, losses, dims, false);
  if (reduction == "sum")
    return n.finish(sum);
  Value counts =
      n.compare(nn::ComparePredicate::ne, labels, n.splatLike(labels, ignored));
  Value count =
      n.reduce(nn::ReductionKind::sum,
               n.cast(counts, Importer::element(losses)), dims, false);
  return n.finish(n.binary<nn::DivOp>(sum, count));
}

ArrayRef<OpRow> accel::import::lossOps() {
  static const OpRow rows[] = {
      {"", "SoftmaxCrossEntropyLoss", 13, 2, 3, importCrossEntropy},
  };
  return rows;
}
