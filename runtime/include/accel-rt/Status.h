// How the runtime reports failure: a value that holds a one-sentence message,
// or nothing. No exceptions and no exit below tools/.

#ifndef ACCEL_RT_STATUS_H
#define ACCEL_RT_STATUS_H

#include <optional>
#include <string>
#include <utility>

namespace accel::rt {

/// Success, or a lower-case one-sentence message (law 7 of the design).
class [[nodiscard]] Status {
public:
  Status() = default;
  static Status error(std::string message) {
    Status status;
    status.text = std::move(message);
    return status;
  }
  bool ok() const { return !text; }
  /// Requires !ok().
  const std::string &message() const { return *text; }

private:
  std::optional<std::string> text;
};

/// What a rank that ends because another did reports.
inline constexpr const char *kAbortedMessage = "another rank ended";

/// `text` without what a terminal or a reader of lines would obey: control
/// characters, breaks of lines, marks that turn the direction of writing, and
/// bytes that are no UTF-8 are written as `\n`, `\x1b` and `\u202e`. What is
/// so written is left alone when it is written again.
std::string printable(const std::string &text);

/// `'text'`, as names and values stand in messages: printable, and of one that
/// is longer than any path its start and its length.
std::string inQuotes(const std::string &text);

} // namespace accel::rt

#define ACCEL_RT_RETURN_IF_ERROR(expression)                                   \
  do {                                                                         \
    if (::accel::rt::Status status_ = (expression); !status_.ok())             \
      return status_;                                                          \
  } while (false)

#endif // ACCEL_RT_STATUS_H
