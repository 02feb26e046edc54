"""The benchmarks are a package beside `src`, not installed with it."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))
