"""`python -m penstock.warm`: fill numba's cache, so that no later process waits for the compiler."""

from __future__ import annotations

from penstock import cutter, envelope
from penstock.columnar import arrays
from penstock.converters import avro_json_walk, framed, protobuf_program
from penstock.fields import avro, keys
from penstock.formats import rows
from penstock.kafka import headers, walk
from penstock.transform import encoding

ALWAYS = (walk, cutter)  # what every task runs
_OTHERS = (headers, rows, avro, keys, arrays, framed, envelope, avro_json_walk, protobuf_program, encoding)


def warm() -> None:
    """Compile everything that is compiled, or load it."""
    for module in (*ALWAYS, *_OTHERS):
        module.warm()


if __name__ == "__main__":
    warm()
