// The story of placement and splitting: which passes, in which order, and why.

#include "Passes.h"
#include "mlir/Pass/PassManager.h"

using namespace mlir;
using namespace accel;

void parallel::buildPlacePipeline(OpPassManager &pm,
                                  const PlaceOptions &options) {
  int64_t stage = options.shardStates.stage;
  // What the user asks for comes first: everything else follows from it.
  AnnotatePassOptions annotate = options.annotate;
  if (stage > 0)
    annotate.dpAxis = dist::MeshOp::kShardAxis.str();
  // Who asks why gets it from the passes in between, and from nothing else.
  auto record = [&](const std::string &by) {
    if (options.explain)
      pm.addPass(createRecordOriginsPass({by}));
  };
  record("the text of the program");
  pm.addPass(createAnnotatePass(annotate));
  record("the batch or a sequence, by dist-annotate");
  // Who is a group is known before anything is split over it.
  pm.addPass(createShareKeyHeadsPass());
  pm.addPass(createPlaceExpertsPass({options.strict}));
  record("dist-place-experts");
  PlaceNamedPassOptions named = options.placeNamed;
  named.stage = stage;
  pm.addPass(createPlaceNamedPass(named));
  record("--shard");
  // What cannot be split is made so where ranks would gain by it.
  pm.addPass(createPadDimsPass({options.splitWeights.vocabulary, stage}));
  if (options.keepPadded)
    pm.addPass(options.keepPadded());
  record("dist-pad-dims");
  // A range of the batch must be a range of the rows that are counted with it.
  pm.addPass(createLeadWithBatchPass());
  // Who shares the work comes before who shares the states: the latter divide
  // what the former have left whole.
  SplitWeightsPassOptions splitWeights = options.splitWeights;
  splitWeights.strict = options.strict;
  pm.addPass(createSplitWeightsPass(splitWeights));
  record("dist-split-weights");
  pm.addPass(createInterleavePartsPass({stage}));
  pm.addPass(createExchangeHeadsPass());
  pm.addPass(createJoinTermsPass());
  pm.addPass(createScatterSumsPass(options.scatterSums));
  if (stage > 0)
    pm.addPass(createPadStatesPass());
  pm.addPass(createShardStatesPass(options.shardStates));
  record("zero_stage " + std::to_string(stage) + ", by dist-shard-states");
  // Who computes what no rank has whole, now that it is known who has what.
  pm.addPass(createAssignOwnersPass({stage}));
  // Decide, then apply: the table is complete before the first type changes.
  pm.addPass(createPropagatePass());
  if (options.explain)
    pm.addPass(createExplainShardingsPass());
  pm.addPass(createMaterializePass({options.strict}));
  // Now that it is seen which keys are gathered.
  pm.addPass(createMarkRingsPass(options.markRings));
  // A sum over ranks may be made in pieces only if what is added to it is cut.
  if (stage > 0)
    pm.addPass(createSliceGradientsPass());
  // Reshards say what moves; where in the step they stand says how often.
  pm.addPass(createOrderReductionsPass({stage}));
  if (stage > 0)
    pm.addPass(createExchangeRowsPass());
  // Now that it is known what is summed over micro-batches, and in which form.
  pm.addPass(createDeclareAccumulatorsPass());
  pm.addPass(createVerifyPass());
}

void parallel::buildSplitPipeline(OpPassManager &pm, bool isVerified) {
  // The text of a phase may come from anywhere.
  if (isVerified)
    pm.addPass(createVerifyPass());
  // Once it is decided what runs, and how often: what is computed again in the
  // backward reads what the backward gathers. Scatters are what no smaller
  // exchange makes in pieces.
  pm.addPass(createRecomputePass());
  pm.addPass(createScatterGradientsPass());
  // What is scattered is sent as codes where it is of any.
  pm.addPass(createSendCodesPass());
  // Weights that nothing gathers are rounded by unit as well.
  pm.addPass(createPlaceGathersPass());
  // Who asks why is told of each reshard where it stands now.
  pm.addPass(createExplainReshardsPass());
  if (isVerified)
    pm.addPass(createVerifyPass());
  // Single collectives first, so that they can be seen, and changed, as types.
  pm.addPass(createPlanReshardsPass());
  pm.addPass(createLocalizePass());
  pm.addPass(createKeepDealtPass());
  pm.addPass(createRingAttentionPass());
  // Now that every sum is a collective, and gradients are still marked.
  pm.addPass(createCompressGradientsPass());
  // On one rank's rows, when all that moves them is seen.
  pm.addPass(createChunkLossPass());
}
