// The structs of PlanFormat.h as JSON text and back. nlohmann-json stays behind
// this header: it means different things with and without exceptions, and the
// compiler has none.

#ifndef ACCEL_RUNTIME_FORMAT_JSON_H
#define ACCEL_RUNTIME_FORMAT_JSON_H

#include "accel-rt/PlanFormat.h"

namespace accel::rt::format {

/// The header's text.
std::string toJson(Executable &executable);

/// Fills `executable` from the header's text. Refuses another format or
/// version, a field that is missing, unknown or of another type.
Status fromJson(const std::string &text, Executable &executable);

} // namespace accel::rt::format

#endif // ACCEL_RUNTIME_FORMAT_JSON_H
