"""Numba is loaded when a compiled loop is first called: commands and drivers that run none do without it."""

import subprocess
import sys

import numpy as np

from penstock.compiled import compiled, inlined


@inlined
def _twice(number):
    return 2 * number


def _doubled(numbers):
    return np.array([_twice(number) for number in numbers])


def test_a_loop_stands_for_what_numba_makes_of_it_and_what_it_calls_gives_way():
    loop = compiled(_doubled)
    assert list(loop(np.arange(3))) == [0, 2, 4]
    assert loop.py_func is _doubled
    assert type(_twice) is type(loop.real())


def test_what_a_driver_imports_loads_no_numba():
    program = "import penstock.sink, penstock.cli.main, penstock.worker, sys; sys.exit('numba' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
