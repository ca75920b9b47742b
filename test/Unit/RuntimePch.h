// What a test of the runtime includes, compiled once: GoogleTest and the
// standard library. Nothing of the runtime, so that a change of one of its
// headers builds those alone that read it.
#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>
