"""The `penstock` command: one file per group of commands; `main.py` is the edge where errors become sentences."""
