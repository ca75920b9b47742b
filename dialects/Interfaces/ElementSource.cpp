// The generated part of the ElementSource interface.

#include "dialects/Interfaces/ElementSource.h"

using namespace mlir;

#include "dialects/Interfaces/ElementSource.cpp.inc"
