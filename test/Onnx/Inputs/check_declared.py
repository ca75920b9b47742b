#!/usr/bin/env python3
"""Breaks a file of acc-export in one place at a time, and holds what acc-opt says of it
against what it should say: check_declared.py FOLDER TEXTPROTO ENCODER..., the last a
command from text to protobuf. Prints what differs."""
import pathlib
import subprocess
import sys

FOLDER, SOURCE = map(pathlib.Path, sys.argv[1:3])
ENCODE = sys.argv[3:]
EXPORT = "property 'accel.export': "
LIST = "property 'accel.parameters': "
FIRST = LIST + "entry 0 ('head.w'): "
CHANGED = "it was changed after acc-export wrote it"

# What is replaced, by what, and the error.
CASES = [
    ('\'{"version": 1}\'', "'{'", EXPORT + "expected JSON, export the model again"),
    ('\'{"version": 1}\'', "'[1]'", EXPORT + "expected an object with an integer 'version'"),
    ('\'{"version": 1}\'', "'{}'", EXPORT + "expected an object with an integer 'version'"),
    ('"version": 1', '"version": 2', EXPORT + "expected version 1, found 2: use acc-export and "
     "acc-opt of one release"),
    ("accel.parameters", "other", LIST + "missing, although the file is marked by "
     "'accel.export': " + CHANGED),
    ("'['", "'[,'", LIST + "expected JSON, export the model again"),
    ("'['", "'{\"a\": ['", LIST + "expected JSON"),
    ("value: '['", "value: '3' } metadata_props { key: 'other' value: '['",
     LIST + "expected a list of entries"),
    ("'['", "'[3,'", LIST + "entry 0: expected an object"),
    ('"name": "head.w"', '"nam": "head.w"', LIST + "entry 0: expected a string 'name'"),
    ('"name": "head.w"', '"name": 3', LIST + "entry 0: expected a string 'name'"),
    ('"name": "head.w"', '"name": ""', LIST + "entry 0: expected a string 'name'"),
    ('"kind": "parameter"', '"kind": "weight"',
     FIRST + "expected kind 'parameter' or 'buffer', found 'weight'"),
    ('"requires_grad": true', '"requires_grad": 1',
     FIRST + "expected true or false for 'requires_grad'"),
    ('"aliases": ["tied.w"]', '"aliases": 1', FIRST + "expected a list 'aliases'"),
    ('"aliases": ["tied.w"]', '"aliases": [1]', FIRST + "expected names in 'aliases'"),
    ('"aliases": ["tied.w"]', '"aliases": [""]', FIRST + "expected names in 'aliases'"),
    ('"shape": [2, 2]', '"shape": "2"', FIRST + "expected a list 'shape'"),
    ('"shape": [2, 2]', '"shape": ["2"]', FIRST + "expected sizes in 'shape'"),
    ('"shape": [2, 2]', '"shape": [-2]', FIRST + "expected sizes in 'shape'"),
    ('"initializer": "w"', '"initializer": "v"',
     FIRST + "the file has no initializer 'v': " + CHANGED),
    ('"shape": [2, 2]', '"shape": [4]',
     FIRST + "expected initializer 'w' of shape [4], found [2, 2]"),
    ('"dtype": "float32"', '"dtype": "float64"',
     FIRST + "expected initializer 'w' of type float64, found float"),
    ('"dtype": "float32"', '"dtype": "int64"',
     FIRST + "expected initializer 'w' of type int64, found float"),
    ('"aliases": ["tied.w"]', '"aliases": ["b"]',
     LIST + "entry 1 ('b'): the name 'b' is declared twice"),
    ('"initializer": "b"', '"initializer": "w"',
     LIST + "entry 1 ('b'): initializer 'w' is declared twice"),
    ('input { name: "b" type', 'output { name: "b" type',
     LIST + "entry 1 ('b'): expected initializer 'b' to be an input of the graph: the file was "
     "changed after acc-export wrote it, give acc-opt the file as it was"),
]


def main():
    FOLDER.mkdir(parents=True, exist_ok=True)
    text, bad = SOURCE.read_text(), 0
    model = FOLDER / "model.onnx"
    for old, new, expected in CASES:
        assert old in text, old
        model.write_bytes(subprocess.run(ENCODE, input=text.replace(old, new, 1).encode(),
                                         stdout=subprocess.PIPE, check=True).stdout)
        result = subprocess.run(["acc-opt", model, "--report=parameters"], text=True,
                                capture_output=True)
        errors = [line for line in result.stderr.splitlines() if "error: " in line]
        if result.returncode != 1 or len(errors) != 1 or (
                f"model.onnx: error: {expected}" not in errors[0]):
            bad += 1
            print(f"{old} -> {new}\n  expected {expected}\n  found ({result.returncode}) "
                  f"{result.stderr.strip()}")
    return bad > 0


sys.exit(main())
