"""python -m acc_data: the command line where it is not installed."""
import sys

from .cli import main

sys.exit(main())
