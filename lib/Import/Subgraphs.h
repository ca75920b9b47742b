// Graphs in attributes: the branches of If, the bodies of Loop and Scan.
#ifndef ACCEL_LIB_IMPORT_SUBGRAPHS_H
#define ACCEL_LIB_IMPORT_SUBGRAPHS_H

#include "NodeImporter.h"

namespace accel::import {

/// Imports the nodes of a subgraph, whose inputs have been defined, where the
/// node is. Its outputs in their order; none after an error.
llvm::SmallVector<ImportedValue> importSubgraph(NodeImporter &n,
                                                const onnx::GraphProto &graph);

} // namespace accel::import

#endif // ACCEL_LIB_IMPORT_SUBGRAPHS_H
