// The generated parts of the Differentiable interface.

#include "dialects/Interfaces/Differentiable.h"

using namespace mlir;

#include "dialects/Interfaces/Differentiable.cpp.inc"
