// What a file of lib/ includes, compiled once: MLIR as in Pch.h, and the op
// classes of nn and dist, which are most of what such a file reads (0.34 s for
// those of nn alone). Not those of plan: ops of it have names of ops of nn, and
// a file in its namespace that names an op must mean what it includes. The room
// of the dialects has Pch.h, so that a change of one does not build the others
// again.
#include "cmake/Pch.h"
#include "dialects/Dist/Dist.h"
#include "dialects/NN/NN.h"
