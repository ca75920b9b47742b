// Events: of the stream's transfers, that they are there; of the body's
// commands, that they are done.

#include "CopyStream.h"

#include "lib/Plan/ComputeStream.h"

using namespace mlir;
using namespace accel;
using namespace accel::plan;

size_t CopyStream::add(Transfer transfer) {
  transfers.push_back(std::move(transfer));
  return transfers.size() - 1;
}

void CopyStream::await(size_t transfer, const User &user) {
  // Events of a stream come in order.
  auto [last, isNew] = known.try_emplace(user.stream, transfer);
  if (!isNew && last->second >= transfer)
    return;
  last->second = transfer;
  transfers[transfer].isAwaited = true;
  OpBuilder builder(user.op);
  WaitOp::create(builder, user.op->getLoc(), nameOf("there", transfer),
                 FlatSymbolRefAttr(), user.stream);
}

/// Whoever writes what the stream still copies.
void CopyStream::awaitMoved() {
  for (size_t number = 0; number < transfers.size(); ++number) {
    CopyOp copy = transfers[number].moved;
    if (!copy)
      continue;
    auto overwrites = [&](CommandOpInterface command) {
      return llvm::any_of(command.getWrites(), [&](ViewAttr view) {
        return view.getBuffer() == copy.getSource().getBuffer();
      });
    };
    for (Operation *op = copy->getNextNode(); op; op = op->getNextNode()) {
      CommandOpInterface writer;
      op->walk([&](CommandOpInterface command) {
        if (overwrites(command))
          writer = command;
      });
      if (!writer)
        continue;
      transfers[number].isAwaited = true;
      OpBuilder builder(op);
      WaitOp::create(builder, op->getLoc(), nameOf("there", number),
                     FlatSymbolRefAttr(), writer.getStreamName());
      break;
    }
  }
}

void CopyStream::write() {
  if (transfers.empty())
    return;
  awaitMoved();
  Block &block = body.getBody().front();
  OpBuilder builder = OpBuilder::atBlockBegin(&block);
  std::string begin = (name + "_begin").str(), end = (name + "_end").str();
  // Its bytes may be what others had before the body.
  RecordOp::create(builder, body.getLoc(), begin, kComputeStream);
  Operation *last =
      WaitOp::create(builder, body.getLoc(), begin, FlatSymbolRefAttr(), name);
  std::map<StringRef, Operation *> waitedFor; ///< of each stream the last
  size_t events = 0;
  for (auto [number, transfer] : llvm::enumerate(transfers)) {
    for (const User &user : transfer.behind) {
      Operation *&known = waitedFor[user.stream];
      if (known && (known == user.op || user.op->isBeforeInBlock(known)))
        continue;
      known = user.op;
      std::string event = nameOf("done", events++);
      OpBuilder beside(user.op);
      if (!transfer.moved)
        beside.setInsertionPointAfter(user.op);
      Operation *record =
          RecordOp::create(beside, user.op->getLoc(), event, user.stream);
      if (last->isBeforeInBlock(record))
        last = record;
      builder.setInsertionPointAfter(last);
      last = WaitOp::create(builder, user.op->getLoc(), event,
                            FlatSymbolRefAttr(), name);
    }
    if (transfer.moved) {
      transfer.moved.setStream(name);
      last = transfer.moved;
    }
    builder.setInsertionPointAfter(last);
    if (transfer.from) {
      last = CopyOp::create(builder, transfer.loc, transfer.from, transfer.to,
                            name);
      last->setAttr(kInsertedByAttr, builder.getStringAttr(pass));
    }
    builder.setInsertionPointAfter(last);
    if (transfer.isAwaited)
      last = RecordOp::create(builder, transfer.loc, nameOf("there", number),
                              name);
  }
  builder.setInsertionPointToEnd(&block);
  RecordOp::create(builder, body.getLoc(), end, name);
  WaitOp::create(builder, body.getLoc(), end, FlatSymbolRefAttr(),
                 kComputeStream);
}
