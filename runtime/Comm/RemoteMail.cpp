// Sends and receives between machines, as chunks. The order by tag, and by who
// sends to whom, is one order for all ranks: none waits for a letter that comes
// after one that its sender has no slot for.

#include "Comm/RemoteTask.h"

#include <tuple>

namespace accel::rt {

std::unique_ptr<RemoteMover> makeLetters(std::vector<RemoteLetter> letters,
                                         const std::string &stream,
                                         HostRank &self) {
  std::vector<size_t> order(letters.size());
  for (size_t i = 0; i < order.size(); ++i)
    order[i] = i;
  auto keyOf = [&](size_t i) {
    const RemoteLetter &letter = letters[i];
    return std::tuple(letter.tag, letter.sends ? self.rank : letter.peer,
                      letter.sends ? letter.peer : self.rank);
  };
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return keyOf(a) < keyOf(b); });

  RemoteMoves moves;
  std::vector<RemoteMover::View> views;
  for (const RemoteLetter &letter : letters) {
    std::vector<int64_t> plain = rowMajorStrides(letter.view->shape);
    const std::vector<int64_t> &strides = letter.view->strides;
    views.push_back({letter.view->dtype, dtypeBytes(letter.view->dtype),
                     PairLayout(letter.view->shape, plain, strides),
                     PairLayout(letter.view->shape, strides, plain),
                     PairLayout(letter.view->shape, strides, strides)});
  }
  for (size_t i : order) {
    const RemoteLetter &letter = letters[i];
    const RemoteMover::View &view = views[i];
    int64_t most = Staging::kSlotBytes / view.bytes,
            elements = view.pack.elements();
    // An empty view is a message, too: the other end waits for it.
    int64_t begin = 0;
    do {
      int64_t end = std::min(begin + most, elements);
      RemoteMove move;
      move.firstFragment = moves.fragments.size();
      moves.fragments.push_back({i, begin, end, 0, 0, {}});
      move.lastFragment = moves.fragments.size();
      move.bytes[1] = static_cast<uint64_t>((end - begin) * view.bytes);
      if (letter.sends) {
        move.targets = {letter.peer};
        move.tagOut = mailTag(letter.tag);
        moves.outs.push_back(std::move(move));
      } else {
        move.from = letter.peer;
        move.tagIn = mailTag(letter.tag);
        move.isMine = true;
        moves.ins.push_back(std::move(move));
      }
      begin = end;
    } while (begin < elements);
  }
  size_t number = wireOf(self, stream);
  return std::make_unique<RemoteMover>(std::move(moves), std::move(views),
                                       Combine::Sum, number,
                                       *self.mailCarriers[number], self);
}

} // namespace accel::rt
