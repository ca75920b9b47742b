// The generated parts of the Castable interface.

#include "dialects/Interfaces/Castable.h"

using namespace mlir;

#include "dialects/Interfaces/Castable.cpp.inc"
