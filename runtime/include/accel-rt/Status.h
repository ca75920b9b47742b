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

/// `'text'`, as names and values stand in messages.
inline std::string inQuotes(const std::string &text) {
  return "'" + text + "'";
}

} // namespace accel::rt

#define ACCEL_RT_RETURN_IF_ERROR(expression)                                   \
  do {                                                                         \
    if (::accel::rt::Status status_ = (expression); !status_.ok())             \
      return status_;                                                          \
  } while (false)

#endif // ACCEL_RT_STATUS_H
