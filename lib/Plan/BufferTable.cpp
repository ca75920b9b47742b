// Keeps the symbol table of a program, and where its buffers end.

#include "BufferTable.h"

using namespace mlir;
using namespace accel::plan;

BufferTable::BufferTable(ProgramOp program) : symbols(program), last(nullptr) {
  for (Operation &op : program.getBody().front()) {
    if (!isa<ArenaOp, BufferOp>(op))
      break;
    last = &op;
  }
}

BufferOp BufferTable::lookup(FlatSymbolRefAttr name) const {
  return symbols.lookup<BufferOp>(name.getAttr());
}

BufferOp BufferTable::lookup(ViewAttr view) const {
  return lookup(view.getBuffer());
}

BufferOp BufferTable::getRoot(BufferOp buffer) const {
  while (buffer && buffer.getAliasOfAttr())
    buffer = lookup(buffer.getAliasOfAttr());
  return buffer;
}

BodyOp BufferTable::getBody(RunOp run) const {
  return symbols.lookup<BodyOp>(run.getTaskAttr().getAttr());
}

void BufferTable::insert(BufferOp buffer) {
  Block &block = cast<ProgramOp>(symbols.getOp()).getBody().front();
  symbols.insert(buffer,
                 last ? std::next(Block::iterator(last)) : block.begin());
  last = buffer;
}
