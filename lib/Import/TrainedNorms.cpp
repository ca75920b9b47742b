// A norm that is trained changes its running statistics, so they are states.

#include "TrainedNorms.h"

#include "mlir/IR/Diagnostics.h"

using namespace mlir;
using namespace accel;
using namespace accel::import;

using Statistic = onnxio::BatchNorms::Statistic;

static LogicalResult addStatistics(const onnxio::OnnxFile &file,
                                   const onnxio::ParameterTable &table,
                                   const onnxio::BatchNorms &norms,
                                   const onnx::NodeProto &node,
                                   TrainedNorms &trained) {
  for (int operand : {3, 4}) {
    std::optional<Statistic> found = norms.findStatistic(node, operand);
    if (!found || table.find(found->name))
      return emitError(file.location(node))
             << "expected an initializer that holds the running "
             << (operand == 3 ? "mean" : "variance")
             << " of a batch norm that is trained, and its name, found "
             << (found ? "parameter '" + found->name + "'"
                       : "operand #" + std::to_string(operand) +
                             ", which is computed or has lost its name")
             << "; " << table.exportRemedy
             << ", or leave the norm as it is with --batch-norm=frozen";
    auto known = llvm::find_if(trained.statistics, [&](const Statistic &each) {
      return each.name == found->name;
    });
    trained.uses[{&node, operand}] = known - trained.statistics.begin();
    if (known == trained.statistics.end())
      trained.statistics.push_back(*found);
  }
  return success();
}

FailureOr<TrainedNorms>
import::findTrainedNorms(const onnxio::OnnxFile &file,
                         const onnxio::ParameterTable &table,
                         const ImportOptions &options) {
  TrainedNorms trained;
  if (!options.forTraining)
    return trained;
  onnxio::BatchNorms norms(file);
  if (options.trainsBatchNorms && norms.nodes().empty())
    return emitError(file.location())
           << "expected batch norms with --batch-norm, found no operator "
              "BatchNormalization (acc-export writes those of a model in "
              "eval() as what they compute)";
  for (const onnx::NodeProto *node : norms.nodes()) {
    std::optional<bool> isTrained = options.trainsBatchNorms;
    if (!isTrained)
      isTrained = norms.isTrained(*node);
    if (!isTrained)
      return emitError(file.location(*node))
             << "expected to be told whether batch norms are trained, which a "
                "file that may have been exported for inference does not say: "
                "say --batch-norm=train (by statistics of the batch, keeping "
                "running ones, as after train()) or --batch-norm=frozen (by "
                "running statistics, as after eval())";
    if (!*isTrained)
      continue;
    trained.nodes.insert(node);
    if (failed(addStatistics(file, table, norms, *node, trained)))
      return failure();
  }
  // What others read would be the value before the run.
  for (const Statistic &statistic : trained.statistics)
    if (statistic.tensor->name() == statistic.name)
      if (const onnx::NodeProto *reader =
              norms.findOtherReader(*statistic.tensor, trained.nodes))
        return emitError(file.location(*reader))
               << "expected running statistics that trained batch norms alone "
                  "read, "
                  "found a use of '"
               << statistic.name
               << "', which training changes; --batch-norm=frozen leaves it as "
                  "it is";
  for (const onnx::ValueInfoProto &output : file.graph().output())
    for (const Statistic &statistic : trained.statistics)
      if (output.name() == statistic.tensor->name())
        return emitError(file.location())
               << "expected running statistics that trained batch norms alone "
                  "read, found output '"
               << output.name()
               << "', which training changes; --batch-norm=frozen leaves it as "
                  "it is";
  return trained;
}
