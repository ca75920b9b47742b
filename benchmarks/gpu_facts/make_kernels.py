"""Assembles every kernel of this folder for sm_90a, without a GPU.

usage: make_kernels.py OUT [WORD...]: into folder OUT; only those with a WORD in their name."""

import sys

import embedding  # noqa: F401 - each adds its kernels to emit's table
import functions  # noqa: F401
import loops  # noqa: F401
import rows  # noqa: F401
from emit import assemble

assemble(sys.argv[1], sys.argv[2:])
