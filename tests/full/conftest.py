"""What takes minutes, or more brokers than one: for `make test-full`, not collected otherwise."""

import os

collect_ignore_glob = [] if os.environ.get("PENSTOCK_FULL") else ["test_*.py"]
