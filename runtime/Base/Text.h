// Whether bytes are a name that JSON, files and messages can all carry.

#ifndef ACCEL_RUNTIME_BASE_TEXT_H
#define ACCEL_RUNTIME_BASE_TEXT_H

#include <string>

namespace accel::rt {

/// Whether `text` is UTF-8, and has no NUL, which ends the names of files.
bool isText(const std::string &text);

} // namespace accel::rt

#endif // ACCEL_RUNTIME_BASE_TEXT_H
