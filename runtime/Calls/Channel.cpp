// Packets with descriptors in them.

#include "Calls/Channel.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace accel::rt {
namespace {

constexpr size_t kMostBytes = 8192;
/// Room for two descriptors, as cmsg(3) wants it.
union Control {
  cmsghdr align;
  char bytes[CMSG_SPACE(2 * sizeof(int))];
};

} // namespace

bool sendMessage(int socket, const Message &message) {
  char bytes[kMostBytes];
  bytes[0] = static_cast<char>(message.kind);
  size_t length = std::min(message.text.size(), kMostBytes - 1);
  std::memcpy(bytes + 1, message.text.data(), length);
  iovec part = {bytes, length + 1};
  msghdr header = {};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  Control control = {};
  if (message.descriptors[0] >= 0) {
    header.msg_control = control.bytes;
    header.msg_controllen = sizeof control.bytes;
    cmsghdr *first = CMSG_FIRSTHDR(&header);
    first->cmsg_level = SOL_SOCKET;
    first->cmsg_type = SCM_RIGHTS;
    first->cmsg_len = CMSG_LEN(2 * sizeof(int));
    std::memcpy(CMSG_DATA(first), message.descriptors, 2 * sizeof(int));
  }
  ssize_t sent;
  do {
    sent = sendmsg(socket, &header, MSG_NOSIGNAL | MSG_DONTWAIT);
  } while (sent < 0 && errno == EINTR);
  return sent >= 0;
}

Received receiveMessage(int socket, int milliseconds, Message &message) {
  pollfd entry = {socket, POLLIN, 0};
  if (poll(&entry, 1, milliseconds) <= 0)
    return Received::Nothing;
  char bytes[kMostBytes];
  iovec part = {bytes, sizeof bytes};
  Control control = {};
  msghdr header = {};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  header.msg_control = control.bytes;
  header.msg_controllen = sizeof control.bytes;
  ssize_t count = recvmsg(socket, &header, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
  if (count < 0 && (errno == EINTR || errno == EAGAIN))
    return Received::Nothing;
  if (count <= 0) // none is empty
    return Received::End;
  message = Message();
  message.kind = static_cast<MessageKind>(bytes[0]);
  message.text.assign(bytes + 1, static_cast<size_t>(count) - 1);
  for (cmsghdr *each = CMSG_FIRSTHDR(&header); each;
       each = CMSG_NXTHDR(&header, each))
    if (each->cmsg_level == SOL_SOCKET && each->cmsg_type == SCM_RIGHTS &&
        each->cmsg_len == CMSG_LEN(sizeof message.descriptors))
      std::memcpy(message.descriptors, CMSG_DATA(each),
                  sizeof message.descriptors);
  return Received::Message;
}

} // namespace accel::rt
