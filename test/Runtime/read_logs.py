"""read_logs.py FILE.jsonl | FILE.csv | FOLDER: prints what acc-run wrote of training steps,
one line a step: its number, loss, norm, rate and evaluation, the same for the three kinds.
A folder is TensorBoard's: its files are taken apart here, by the format of records and of
protocol buffers, with a CRC of its own (bit by bit, over the polynomial of RFC 3720)."""
import csv
import datetime
import json
import pathlib
import struct
import sys


def crc(data):
    """CRC-32C, masked as records have it."""
    value = 0xFFFFFFFF
    for byte in data:
        value ^= byte
        for _ in range(8):
            value = value >> 1 ^ (0x82F63B78 if value & 1 else 0)
    value ^= 0xFFFFFFFF
    return ((value >> 15 | value << 17) + 0xA282EAD8) & 0xFFFFFFFF


assert crc(b"123456789") == ((0xE3069283 >> 15 | 0xE3069283 << 17) + 0xA282EAD8) & 0xFFFFFFFF


def records(data):
    at = 0
    while at < len(data):
        length, = struct.unpack_from("<Q", data, at)
        assert struct.unpack_from("<I", data, at + 8)[0] == crc(data[at:at + 8])
        body = data[at + 12:at + 12 + length]
        assert struct.unpack_from("<I", data, at + 12 + length)[0] == crc(body)
        yield body
        at += length + 16


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return value, at


def fields(data):
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        if key & 7 == 0:
            value, at = varint(data, at)
        elif key & 7 == 2:
            length, at = varint(data, at)
            value, at = data[at:at + length], at + length
        else:
            size = {1: 8, 5: 4}[key & 7]
            value, = struct.unpack_from("<d" if size == 8 else "<f", data, at)
            at += size
        yield key >> 3, value


def events(folder):
    """Steps of all files of a folder, a later file's in the place of an earlier one's from
    the step on at which it says that a session starts."""
    steps = {}
    for file in sorted(folder.iterdir()):
        for body in records(file.read_bytes()):
            event = dict(fields(body))
            assert event[1] > 1.7e9  # the time
            if 7 in event:
                steps = {step: row for step, row in steps.items() if step < event[2]}
            row = {}
            for number, value in fields(event.get(5, b"")):
                assert number == 1
                parts = dict(fields(value))
                row[parts[1].decode()] = parts[2]
            if row:
                assert event[2] not in steps
                steps[event[2]] = row
    for step, row in steps.items():
        assert row["train/samples_per_second"] > 0
        yield (step, row["train/loss"], row["train/grad_norm"], row["train/learning_rate"],
               row.get("train/epoch"), row.get("eval/loss"))


def rows(path):
    if path.is_dir():
        yield from events(path)
        return
    with open(path) as stream:
        lines = list(csv.DictReader(stream)) if path.suffix == ".csv" else map(
            json.loads, stream.readlines())
    before = datetime.datetime.min
    for line in lines:
        time = datetime.datetime.strptime(line["time"], "%Y-%m-%dT%H:%M:%S.%fZ")
        age = datetime.datetime.now(datetime.timezone.utc).replace(tzinfo=None) - time
        assert before <= time and abs(age.total_seconds()) < 600
        before = time
        assert float(line["time_s"]) > 0 and float(line["samples_per_s"]) > 0
        assert float(line["eta_s"]) >= 0
        numbers = [float(line[key]) if line.get(key) else None
                   for key in ("loss", "grad_norm", "lr", "epoch", "eval_loss")]
        yield int(line["step"]), *numbers


for step, *numbers in rows(pathlib.Path(sys.argv[1])):
    loss, norm, rate, epoch, evaluated = ["" if n is None else f"{n:.5g}" for n in numbers]
    print(f"step {step}: {loss} {norm} {rate}" + (epoch and f" epoch {epoch}") +
          (evaluated and f" eval {evaluated}"))
