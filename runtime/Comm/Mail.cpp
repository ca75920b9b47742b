// Sends and receives between two ranks by rendezvous: the sender posts where
// its bytes are, the receiver copies them and says so, and only then may the
// sender go on. Within a group all letters are posted before any is waited for.
// Those of other machines go between: they wait for none of this one.

#include "Base/WaitSpan.h"
#include "Comm/RemoteTask.h"

#include <cstring>

namespace accel::rt {
namespace {

/// A send or receive with its peer and the place of its view among addresses.
struct Item {
  Mailbox *mailbox;
  Letter *letters; ///< Between the two.
  int64_t tag;
  size_t address;
  const View *view;
  std::unique_ptr<HostView> room = nullptr; ///< A receive's view.
  Letter *letter = nullptr; ///< A send's, while it is under way.
};

class MailTask : public HostTask {
public:
  explicit MailTask(HostRank &self) : self(self) {}

  Status run(const Address *addresses, int64_t) override {
    for (Item &send : sends)
      ACCEL_RT_RETURN_IF_ERROR(post(send, addresses[send.address]));
    if (remote)
      ACCEL_RT_RETURN_IF_ERROR(moveRemote(addresses));
    for (Item &recv : recvs)
      ACCEL_RT_RETURN_IF_ERROR(take(recv, addresses[recv.address]));
    for (Item &send : sends)
      ACCEL_RT_RETURN_IF_ERROR(release(send));
    return Status();
  }

  std::vector<Item> sends, recvs;
  /// Of other machines: the addresses' places, and where receives go to.
  std::unique_ptr<RemoteMover> remote;
  std::vector<Item> remoteItems;

private:
  Status moveRemote(const Address *addresses) {
    for (size_t i = 0; i < remoteItems.size(); ++i) {
      Item &item = remoteItems[i];
      Address address = addresses[item.address];
      if (item.room)
        remote->outputs[i] = item.room->find(address);
      else
        remote->inputs[i] = self.findShared(address);
    }
    remote->start();
    ACCEL_RT_RETURN_IF_ERROR(remote->run());
    remote->end();
    for (Item &item : remoteItems)
      if (item.room)
        ACCEL_RT_RETURN_IF_ERROR(item.room->store(addresses[item.address]));
    return Status();
  }

  /// Waits until `done()`, looking again whenever `word` changes.
  template <class F> Status waitUntil(Word &word, F &&done) {
    if (done())
      return Status();
    WaitSpan span;
    for (int look = 0;; ++look) {
      uint32_t seen = word.load();
      if (done()) {
        self.control.self().waiting = false;
        return Status();
      }
      if (look < self.spin) {
        pauseCore();
        continue;
      }
      if (self.control.isAborted())
        return Status::error(kAbortedMessage);
      self.control.self().waiting = true;
      waitWhile(word, seen, kSleepMilliseconds);
    }
  }

  Status post(Item &send, Address address) {
    ACCEL_RT_RETURN_IF_ERROR(waitUntil(send.mailbox->taken, [&] {
      for (size_t i = 0; i < self.memory.numLetters(); ++i) {
        uint32_t free = Letter::Free;
        if (send.letters[i].state.compare_exchange_strong(free,
                                                          Letter::Writing)) {
          send.letter = &send.letters[i];
          return true;
        }
      }
      return false;
    }));
    Letter &letter = *send.letter;
    letter.tag = send.tag;
    letter.offset = static_cast<uint64_t>(self.findShared(address) -
                                          self.memory.sharedBase());
    std::copy(send.view->strides.begin(), send.view->strides.end(),
              letter.strides);
    letter.state.store(Letter::Posted);
    send.mailbox->posted.fetch_add(1);
    wakeWaiters(send.mailbox->posted);
    return Status();
  }

  Status take(Item &recv, Address address) {
    Letter *found = nullptr;
    ACCEL_RT_RETURN_IF_ERROR(waitUntil(recv.mailbox->posted, [&] {
      for (size_t i = 0; i < self.memory.numLetters(); ++i) {
        Letter &letter = recv.letters[i];
        if (letter.state.load() == Letter::Posted && letter.tag == recv.tag) {
          found = &letter;
          return true;
        }
      }
      return false;
    }));
    if (self.moves)
      copyView(*recv.view, recv.room->find(address),
               self.memory.sharedBase() + found->offset, found->strides);
    if (self.moves)
      ACCEL_RT_RETURN_IF_ERROR(recv.room->store(address));
    found->state.store(Letter::Taken);
    recv.mailbox->taken.fetch_add(1);
    wakeWaiters(recv.mailbox->taken);
    return Status();
  }

  Status release(Item &send) {
    ACCEL_RT_RETURN_IF_ERROR(waitUntil(send.mailbox->taken, [&] {
      return send.letter->state.load() == Letter::Taken;
    }));
    send.letter->state.store(Letter::Free);
    // Another stream of this rank may wait for a free letter.
    send.mailbox->taken.fetch_add(1);
    wakeWaiters(send.mailbox->taken);
    return Status();
  }

  /// Copies a view whose source strides are known only now.
  static void copyView(const View &view, char *target, const char *source,
                       const int64_t *sourceStrides) {
    size_t rank = view.shape.size();
    int64_t bytes = dtypeBytes(view.dtype);
    int64_t inner = rank ? view.shape[rank - 1] : 1;
    int64_t outer = 1;
    for (size_t d = 0; d + 1 < rank; ++d)
      outer *= view.shape[d];
    for (int64_t i = 0; i < outer && inner > 0; ++i) {
      int64_t rest = i, to = 0, from = 0;
      for (size_t d = rank - 1; rank > 1 && d-- > 0; rest /= view.shape[d]) {
        to += rest % view.shape[d] * view.strides[d];
        from += rest % view.shape[d] * sourceStrides[d];
      }
      copyStrided(bytes, target + to * bytes, rank ? view.strides[rank - 1] : 1,
                  source + from * bytes, rank ? sourceStrides[rank - 1] : 1,
                  inner);
    }
  }

  HostRank &self;
};

/// The rank that is `delta` away along `axis`.
Status findPeer(const HostRank &self, const std::string &axis, int64_t delta,
                int64_t &peer) {
  const Coordinates &mine = self.coordinates;
  int64_t coordinate = mine.at(axis) + delta;
  if (coordinate < 0 || coordinate >= mine.size(axis))
    return Status::error("expected a rank at coordinate " +
                         std::to_string(coordinate) + " of axis " +
                         inQuotes(axis) + ", whose size is " +
                         std::to_string(mine.size(axis)));
  peer = 0;
  for (size_t i = 0; i < mine.axes.size(); ++i)
    peer = peer * mine.axes[i].size +
           (mine.axes[i].name == axis ? coordinate : mine.values[i]);
  return Status();
}

} // namespace

Status prepareMail(const Program &program, const Command &command,
                   HostRank &self, std::unique_ptr<HostTask> &task) {
  auto made = std::make_unique<MailTask>(self);
  size_t address = 0;
  std::vector<RemoteLetter> letters;
  auto addSend = [&](const SendCommand &send) {
    int64_t peer;
    ACCEL_RT_RETURN_IF_ERROR(findPeer(self, send.axis, send.delta, peer));
    if (self.moves && program.buffers[send.view.buffer].space != "shared")
      return Status::error("expected what is sent in space 'shared', found it "
                           "in " +
                           inQuotes(program.buffers[send.view.buffer].space));
    if (!self.memory.isHere(peer)) {
      letters.push_back({true, peer, send.tag, &send.view});
      made->remoteItems.push_back(
          {nullptr, nullptr, send.tag, address++, &send.view});
      return Status();
    }
    made->sends.push_back({&self.memory.mailbox(self.rank, peer),
                           self.memory.letters(self.rank, peer), send.tag,
                           address++, &send.view});
    return Status();
  };
  auto addRecv = [&](const RecvCommand &recv) {
    int64_t peer;
    ACCEL_RT_RETURN_IF_ERROR(findPeer(self, recv.axis, recv.delta, peer));
    bool isShared = program.buffers[recv.view.buffer].space == "shared";
    if (!self.memory.isHere(peer)) {
      letters.push_back({false, peer, recv.tag, &recv.view});
      made->remoteItems.push_back(
          {nullptr, nullptr, recv.tag, address++, &recv.view,
           std::make_unique<HostView>(recv.view, isShared, self)});
      return Status();
    }
    made->recvs.push_back(
        {&self.memory.mailbox(peer, self.rank),
         self.memory.letters(peer, self.rank), recv.tag, address++, &recv.view,
         std::make_unique<HostView>(recv.view, isShared, self)});
    return Status();
  };
  if (auto *send = std::get_if<SendCommand>(&command.what)) {
    ACCEL_RT_RETURN_IF_ERROR(addSend(*send));
  } else if (auto *recv = std::get_if<RecvCommand>(&command.what)) {
    ACCEL_RT_RETURN_IF_ERROR(addRecv(*recv));
  } else {
    auto &group = std::get<GroupCommand>(command.what);
    for (const SendCommand &one : group.sends)
      ACCEL_RT_RETURN_IF_ERROR(addSend(one));
    for (const RecvCommand &one : group.recvs)
      ACCEL_RT_RETURN_IF_ERROR(addRecv(one));
  }
  if (!letters.empty() && self.moves)
    made->remote = makeLetters(letters, command.stream, self);
  task = std::move(made);
  return Status();
}

} // namespace accel::rt
