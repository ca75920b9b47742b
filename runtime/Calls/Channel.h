// The socket between a program and the acc-run that it has started: what is
// said beside calls. Its end is how either side learns that the other is gone.

#ifndef ACCEL_RUNTIME_CALLS_CHANNEL_H
#define ACCEL_RUNTIME_CALLS_CHANNEL_H

#include <string>

namespace accel::rt {

/// The option by which acc-run is told of the socket's descriptor, and which
/// one it is there.
inline constexpr const char *kServeOption = "--serve";
inline constexpr int kServeDescriptor = 3;

/// What a message is; all go to the caller.
enum class MessageKind : char {
  Board = 'B',    ///< With two descriptors: the board's file, the weights'.
  Progress = 'P', ///< A line of how far loading is.
  Warning = 'W',  ///< A sentence that a user should know.
  Error = 'E'     ///< Why the run has ended; the last one.
};

struct Message {
  MessageKind kind = MessageKind::Progress;
  std::string text;
  int descriptors[2] = {-1, -1}; ///< Whoever receives it closes them.
};

/// Sends on a SOCK_SEQPACKET; a text that is too long for a packet is cut.
/// Never waits, and raises no signal; returns whether it was sent: where
/// nobody reads, it is not.
bool sendMessage(int socket, const Message &message);

enum class Received { Message, Nothing, End };
/// Takes the next message, if there is one within `milliseconds` (0: now).
Received receiveMessage(int socket, int milliseconds, Message &message);

} // namespace accel::rt

#endif // ACCEL_RUNTIME_CALLS_CHANNEL_H
