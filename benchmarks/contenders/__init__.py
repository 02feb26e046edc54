"""The contenders' own programs. Each answers one JSON line on stdin (a job) with one on stdout, and stays warm."""
