"""python -m acc_export: the command line where it is not installed."""
import sys

from .cli import main

sys.exit(main())
