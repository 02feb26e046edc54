"""What is compiled, compiled anew with numba's bounds checks: an index outside of its array raises IndexError there."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
FUZZ = "import sys; sys.path.insert(0, sys.argv[1]); import fuzzing; fuzzing.fuzz(4_000, seed=2)"
PYTEST = ("-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", "test_avro_ or fastavro or broken")
PROGRAMS = {
    "the reader, fuzzed": ("-c", FUZZ, HERE.parent),
    "fields, columns and JSON of Avro": (
        *PYTEST,
        HERE / "test_avro_field.py",
        HERE / "test_avro_json.py",
        HERE / "test_columns.py",
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_nothing_is_read_outside_of_its_array(name, tmp_path):
    environment = {**os.environ, "NUMBA_BOUNDSCHECK": "1", "NUMBA_CACHE_DIR": str(tmp_path)}
    command = [sys.executable, *PROGRAMS[name]]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=500, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
