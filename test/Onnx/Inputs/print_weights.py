"""Prints the tensors of a safetensors file, by name: print_weights.py SCRIPTS FILE."""
import sys

sys.path.insert(0, sys.argv[1])

import tensorfiles  # noqa: E402

for name, (_, _, values) in sorted(tensorfiles.read_safetensors(sys.argv[2]).items()):
    print(name, list(values))
