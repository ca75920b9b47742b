#!/usr/bin/env python3
"""Lets the power go at every moment of a run that saves: after each of the calls by
which acc-run or acc-opt change files and folders, it makes the file systems that may be
left, and looks whether all is there that was said to be. What was synchronised is; of
all else any part may be: each write (or half of it), each new length, and each change of
a folder alone. See docs/Faults.md.

  power.py                       every state that is thought of, of every run
  power.py --most 100            at most so many of each run, the same every time
  power.py --without-sync        the same without each synchronisation in turn: lists
                                 those without which nothing is lost"""
import argparse
import concurrent.futures
import json
import os
import pathlib
import random
import shutil
import sys
import threading
import time

from scenarios import BUILD, DUE, SCENARIOS, Bench, Failed, Train, digest, make_work, run, tree


class File:
    """The bytes on storage, and what was done since."""

    def __init__(self, data=b""):
        self.data, self.pending = data, []

    def after(self, chosen):
        data = bytearray(self.data)
        for change in self.pending:
            part = chosen(change)
            if not part:
                continue
            if change.bytes is None:
                data = data[:change.at].ljust(change.at, b"\0")
                continue
            written = change.bytes[:len(change.bytes) // 2] if part == "half" else change.bytes
            data = data.ljust(change.at, b"\0")
            data[change.at:change.at + len(written)] = written
        return bytes(data)

    def sync(self):
        self.data, self.pending = self.after(lambda change: "all"), []


class Folder:
    """The names on storage, and what was done since."""

    def __init__(self, entries=None):
        self.entries, self.pending = entries or {}, []

    def after(self, chosen):
        entries = dict(self.entries)
        for change in self.pending:
            if chosen(change):
                for name, what in change.names.items():
                    if what is None:
                        entries.pop(name, None)
                    else:
                        entries[name] = what
        return entries

    def sync(self):
        self.entries, self.pending = self.after(lambda change: "all"), []


class Change:
    """What one call did to a file or folder: bytes at an offset, a length (bytes are
    None), or names (None: one that went)."""

    def __init__(self, at=0, data=None, names=None):
        self.at, self.bytes, self.names = at, data, names


class Disk:
    """What a log of LogWrites.cpp did to a folder."""

    def __init__(self, folder):
        self.inodes = {}
        self.root = self.scan(folder)

    def scan(self, path):
        info = path.stat()
        if path.is_dir():
            made = Folder({child.name: self.scan(child) for child in path.iterdir()})
        else:
            made = File(path.read_bytes())
        self.inodes[f"{info.st_dev}:{info.st_ino}"] = made
        return made

    def change(self, folder, **names):
        if folder in self.inodes:
            self.inodes[folder].pending.append(Change(names=names["names"]))

    def apply(self, line):
        """Whether the line is of something that the disk knows."""
        what, *words = line.split()
        name = lambda word: bytes.fromhex(word[1:]).decode()  # noqa: E731
        if what in ("file", "folder"):
            self.inodes[words[2]] = File() if what == "file" else Folder()
            self.change(words[0], names={name(words[1]): self.inodes[words[2]]})
        elif what == "unnamed":
            self.inodes[words[0]] = File()
        elif what == "syncall":
            for each in self.inodes.values():
                each.sync()
        elif what in ("write", "size", "sync"):
            file = self.inodes.get(words[0])
            if file is None:
                return False
            if what == "sync":
                file.sync()
            elif what == "write":
                file.pending.append(Change(int(words[1]), bytes.fromhex(words[2][1:])))
            elif len(file.after(lambda change: "all")) != int(words[1]):
                file.pending.append(Change(int(words[1])))
        elif what == "link":
            self.change(words[1], names={name(words[2]): self.inodes.get(words[0], File())})
        elif what == "remove":
            self.change(words[0], names={name(words[1]): None})
        elif what == "rename":
            if words[0] != words[2]:
                raise Failed(f"expected renames in one folder only, found {line}")
            if words[0] not in self.inodes:
                return False
            moved = self.inodes[words[0]].after(lambda change: "all")[name(words[1])]
            self.change(words[0], names={name(words[1]): None, name(words[3]): moved})
        else:
            return False
        return True

    def pending(self):
        """The changes that are not on storage, of what can be reached in any state."""
        seen, todo = {}, [self.root]
        while todo:
            each = todo.pop()
            if id(each) in seen:
                continue
            seen[id(each)] = each
            if isinstance(each, Folder):
                todo += each.entries.values()
                for change in each.pending:
                    todo += [what for what in change.names.values() if what]
        return [change for each in seen.values() for change in each.pending]

    def left(self, chosen, folder=None, path=""):
        """The files, by path, where `chosen` says what reached storage of a change."""
        found = {}
        for name, what in (folder or self.root).after(chosen).items():
            if isinstance(what, Folder):
                found[path + name] = None
                found.update(self.left(chosen, what, f"{path}{name}/"))
            else:
                found[path + name] = what.after(chosen)
        return found

    def states(self, draw):
        """The file systems that may be left now."""
        pending = self.pending()
        names = {id(change) for change in pending if change.names is not None}
        writes = [change for change in pending if change.bytes is not None]
        yield self.left(lambda change: False)
        yield self.left(lambda change: "all")
        if not pending:
            return
        yield self.left(lambda change: id(change) in names)
        yield self.left(lambda change: id(change) not in names)
        yield self.left(lambda change: change.bytes is None)
        for one in pending:
            yield self.left(lambda change: change is one)
            yield self.left(lambda change: change is not one)
        for one in writes:
            yield self.left(lambda change: "half" if change is one else "all")
            yield self.left(lambda change: "half" if change is one else id(change) in names)
        for _ in range(8):
            ways = {id(change): draw.choice([False, "half", "all"]) for change in pending}
            yield self.left(lambda change: ways[id(change)])


def steps_said(text):
    """The checkpoints that whoever reads the lines knows of: a step's line names the newest
    that is on storage, and the run's comes after all."""
    said = [json.loads(line) for line in text.decode().splitlines()]
    newest = max((line.get("checkpoint", 0) for line in said), default=0)
    ended = any("step" not in line for line in said)
    return [step for step in DUE if step <= newest or ended]


class Outage:
    """One run, and all that may be left of it."""

    def __init__(self, name, bench, options):
        self.name, self.options = name, options
        self.scenario = SCENARIOS[name](bench)
        self.bench = self.scenario.bench
        self.known, self.lock, self.bad = {}, threading.Lock(), []
        self.calls = self.tried = self.made = 0

    def log(self):
        folder = self.options.work / f"log-{self.name}"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        self.scenario.prepare(folder)
        disk, log = Disk(folder), folder.parent / f"{folder.name}.txt"
        log.write_bytes(b"")
        status, stdout, stderr = run(self.scenario.command(), folder, self.options.library,
                                     ACCEL_LOG=str(log), **self.scenario.environment)
        if status != 0:
            raise Failed(f"{self.name}: expected to succeed, found {status}: {stderr}")
        return disk, log.read_text().splitlines(), stdout.encode(), tree(folder)

    def states(self, disk, lines, stdout):
        """Each state with what must be in it."""
        draw = random.Random(self.options.seed)
        said, ended = b"", False
        for number, line in enumerate([*lines, "exit"]):
            if line == "exit":
                said, ended = stdout, True
            elif line.startswith("said "):
                said = stdout[:int(line.split()[1])]
            elif not disk.apply(line):
                continue
            self.calls += 1
            for left in disk.states(draw):
                self.made += 1
                yield number, line, left, said, ended
    def different(self, disk, lines, stdout):
        """The same, each once."""
        unique = {}
        for number, line, left, said, ended in self.states(disk, lines, stdout):
            key = (digest(left), tuple(steps_said(said)) if b"step" in said else (), ended)
            unique.setdefault(key, (number, line, left, said, ended))
        return list(unique.values())

    def run(self):
        disk, lines, stdout, end = self.log()
        todo = self.different(disk, lines, stdout)
        # What the model of a disk makes of the log must be what is there.
        if disk.left(lambda change: "all") != end:
            raise Failed(f"{self.name}: the log does not lead to what is there")
        step = max(1, -(-len(todo) // self.options.most))
        start = time.monotonic()
        with concurrent.futures.ThreadPoolExecutor(self.options.jobs) as pool:
            list(pool.map(self.judge, todo[::-1][::step]))
        print(f"{self.name}: {self.calls} moments, {self.made} states, {len(todo)} different, "
              f"{self.tried} gone on from, {len(self.bad)} WRONG, {time.monotonic() - start:.0f} s",
              flush=True)

    def check_syncs(self):
        """Forgets one synchronisation after another: something must be lost by it, or it
        was not needed, or nobody would notice that it is not there."""
        needless = []
        log = [line.split()[0] for line in self.log()[1]]
        syncs = [number for number, what in enumerate(log) if what.startswith("sync")]
        for turn in range(len(syncs)):
            disk, lines, stdout, _ = self.log()
            numbers = [i for i, line in enumerate(lines) if line.startswith("sync")]
            del lines[numbers[turn]]
            if not any(self.is_wrong(state) for state in self.different(disk, lines, stdout)):
                needless.append(turn + 1)
        print(f"{self.name}: {len(syncs)} synchronisations, not needed: {needless or 'none'}",
              flush=True)

    def is_wrong(self, state):
        try:
            self.try_state(state)
        except Failed:
            return True
        return False

    def judge(self, state):
        number, line, *_ = state
        try:
            self.try_state(state)
        except Failed as problem:
            with self.lock:
                self.bad.append(f"{self.name}, after call {number} ({line[:60]}): {problem}")
                print(f"  {self.bad[-1]}", flush=True)
        with self.lock:
            self.tried += 1

    def try_state(self, state):
        _, _, left, said, ended = state
        folder = self.options.work / f"left-{threading.get_ident()}"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        for name, data in left.items():
            if data is None:
                (folder / name).mkdir(parents=True, exist_ok=True)
            else:
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                (folder / name).write_bytes(data)
        if not isinstance(self.scenario, Train):
            return self.scenario.check(folder, 0 if ended else 1, "", "")
        said = steps_said(said)
        found = self.bench.check_whole(folder / "c")
        lost = [step for step in [*self.scenario.before, *said] if step not in found]
        if lost:
            raise Failed(f"lost: the checkpoints of {lost}, which were said to be saved")
        self.bench.check_goes_on(folder / "c", max(found, default=0))


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    names = ["train", "resume", "stale", "data", "given", "save", "save-named",
             "compile-cold"]
    parser.add_argument("--scenarios", type=lambda text: text.split(","), default=names)
    parser.add_argument("--most", type=int, default=1 << 60, help="states of a run")
    parser.add_argument("--without-sync", action="store_true")
    parser.add_argument("--seed", type=int, default=1, help="of the parts that are drawn")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--work", type=pathlib.Path, help="an empty folder (default: a temporary one)")
    parser.add_argument("--library", type=pathlib.Path, default=BUILD / "lib" / "accel-log-writes.so")
    options = parser.parse_args()
    with make_work("power") as folder:
        options.work = options.work or pathlib.Path(folder)
        try:
            bench, bad = Bench(options.work), []
            for name in options.scenarios:
                outage = Outage(name, bench, options)
                outage.check_syncs() if options.without_sync else outage.run()
                bad += outage.bad
        except Failed as problem:
            print(f"error: {problem}", file=sys.stderr)
            return 1
    print("states without what was said to be there:", len(bad))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
