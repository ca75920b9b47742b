// Frames over streams: what comes is given to the oldest receive that it fits,
// or kept until one is made.

#include "Conformance/SocketNetwork.h"

#include "Base/SystemError.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <deque>
#include <list>
#include <map>
#include <sys/socket.h>
#include <unistd.h>

namespace accel::rt::conformance {
namespace {

class SocketNetwork : public Network {
public:
  SocketNetwork(int64_t self, std::vector<int> row)
      : self(self), peers(row.size()) {
    for (size_t i = 0; i < row.size(); ++i)
      peers[i].socket = row[i];
  }
  ~SocketNetwork() override {
    for (Peer &peer : peers)
      if (peer.socket >= 0)
        close(peer.socket);
  }
  int64_t rank() const override { return self; }
  int64_t size() const override { return static_cast<int64_t>(peers.size()); }

  Status send(int64_t to, int64_t tag, const void *data, size_t bytes,
              Request &request) override {
    request = ++last;
    Frame frame{request, {}, 0};
    Header header{tag, bytes};
    frame.bytes.resize(sizeof header + bytes);
    std::memcpy(frame.bytes.data(), &header, sizeof header);
    if (bytes)
      std::memcpy(frame.bytes.data() + sizeof header, data, bytes);
    peers[static_cast<size_t>(to)].leaving.push_back(std::move(frame));
    isOpen[request] = true;
    return Status();
  }
  Status receive(int64_t from, int64_t tag, void *data, size_t bytes,
                 Request &request) override {
    request = ++last;
    isOpen[request] = true;
    posted.push_back({request, from, tag, data, bytes});
    return Status();
  }
  Status test(Request request, bool &done, Arrival *arrival) override {
    for (size_t peer = 0; peer < peers.size(); ++peer)
      if (peers[peer].socket >= 0)
        move(peer);
    match();
    auto found = isOpen.find(request);
    done = found == isOpen.end() || !found->second;
    if (done && arrival)
      *arrival = arrivals[request];
    if (done)
      isOpen.erase(request), arrivals.erase(request);
    return Status();
  }
  void finish() override {}

private:
  struct Header {
    int64_t tag;
    uint64_t bytes;
  };
  struct Frame {
    Request request;
    std::vector<char> bytes;
    size_t done;
  };
  struct Peer {
    int socket = -1;
    std::deque<Frame> leaving;
    std::vector<char> coming; ///< A header, then its bytes.
  };
  struct Posted {
    Request request;
    int64_t from, tag;
    void *data;
    size_t bytes;
  };
  struct Arrived {
    int64_t from, tag;
    std::vector<char> bytes;
  };

  void move(size_t number) {
    Peer &peer = peers[number];
    while (!peer.leaving.empty()) {
      Frame &frame = peer.leaving.front();
      ssize_t count =
          ::send(peer.socket, frame.bytes.data() + frame.done,
                 frame.bytes.size() - frame.done, MSG_DONTWAIT | MSG_NOSIGNAL);
      if (count <= 0)
        break;
      frame.done += static_cast<size_t>(count);
      if (frame.done < frame.bytes.size())
        break;
      isOpen[frame.request] = false;
      peer.leaving.pop_front();
    }
    for (;;) {
      Header header{0, 0};
      size_t wanted = sizeof header;
      if (peer.coming.size() >= wanted) {
        std::memcpy(&header, peer.coming.data(), sizeof header);
        wanted += header.bytes;
      }
      if (peer.coming.size() >= sizeof header && peer.coming.size() == wanted) {
        arrived.push_back(
            {static_cast<int64_t>(number), header.tag,
             std::vector<char>(peer.coming.begin() + sizeof header,
                               peer.coming.end())});
        peer.coming.clear();
        continue;
      }
      size_t had = peer.coming.size();
      peer.coming.resize(wanted);
      ssize_t count = recv(peer.socket, peer.coming.data() + had, wanted - had,
                           MSG_DONTWAIT);
      peer.coming.resize(had +
                         static_cast<size_t>(std::max<ssize_t>(0, count)));
      if (count <= 0)
        return;
    }
  }

  void match() {
    for (auto one = arrived.begin(); one != arrived.end();) {
      auto fits = std::find_if(posted.begin(), posted.end(), [&](auto &wanted) {
        return wanted.tag == one->tag &&
               (wanted.from == kAnyone || wanted.from == one->from);
      });
      if (fits == posted.end()) {
        ++one;
        continue;
      }
      size_t bytes = std::min(fits->bytes, one->bytes.size());
      if (bytes)
        std::memcpy(fits->data, one->bytes.data(), bytes);
      arrivals[fits->request] = {one->from, bytes};
      isOpen[fits->request] = false;
      posted.erase(fits);
      one = arrived.erase(one);
    }
  }

  int64_t self;
  std::vector<Peer> peers;
  Request last = 0;
  std::map<Request, bool> isOpen;
  std::map<Request, Arrival> arrivals;
  std::list<Posted> posted;
  std::list<Arrived> arrived;
};

} // namespace

Status SocketMesh::create(int64_t ranks, SocketMesh &mesh) {
  size_t count = static_cast<size_t>(ranks);
  mesh.ends.assign(count, std::vector<int>(count, -1));
  for (size_t a = 0; a < count; ++a)
    for (size_t b = a + 1; b < count; ++b) {
      int pair[2];
      if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
        return Status::error("cannot make a socket: " + systemError(errno));
      mesh.ends[a][b] = pair[0];
      mesh.ends[b][a] = pair[1];
    }
  return Status();
}

SocketMesh::~SocketMesh() {
  for (const std::vector<int> &row : ends)
    for (int end : row)
      if (end >= 0)
        close(end);
}

std::unique_ptr<Network> SocketMesh::join(int64_t rank) {
  std::vector<int> mine = ends[static_cast<size_t>(rank)];
  for (size_t other = 0; other < ends.size(); ++other)
    for (int end : ends[other])
      if (end >= 0 && static_cast<int64_t>(other) != rank)
        close(end);
  ends.clear();
  return std::make_unique<SocketNetwork>(rank, std::move(mine));
}

} // namespace accel::rt::conformance
