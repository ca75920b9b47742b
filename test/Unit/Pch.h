// What a test of the compiler includes, compiled once: GoogleTest, and what the
// files of lib/ have.
#include "cmake/DialectsPch.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
