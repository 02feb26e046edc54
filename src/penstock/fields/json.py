"""One field out of many JSON documents, by its dotted path: only what lies on the way is decoded."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from penstock.columns import Part
from penstock.model import Slices

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from penstock.columns import Field

_LONG = 2**63
_ABSENT, _MALFORMED = msgspec.UNSET, object()
_TYPES: dict[type, str] = {
    type(None): "null",
    bool: "boolean",
    int: "long",
    float: "double",
    str: "string",
    dict: "record",
    list: "array",
    type(_ABSENT): "absent",
    type(_MALFORMED): "malformed",
}


def json_field(data: NDArray[np.uint8], offsets: NDArray[np.int64], rows: NDArray[np.int64], path: str) -> Field:
    """The field in `rows`: row i is the document `data[offsets[i]:offsets[i + 1]]`.

    A document without the field is `absent`, one with a null on the way `null`.
    """
    read, raw = _reader(tuple(path.split("."))), data.data
    values = [read(raw[offsets[row] : offsets[row + 1]]) for row in rows.tolist()]
    types = [_type(value) for value in values]
    parts = []
    for name in dict.fromkeys(types):
        mine = np.array([at for at, each in enumerate(types) if each == name], dtype=np.int64)
        parts.append(_part(name, rows[mine], [values[at] for at in mine.tolist()]))
    return tuple(parts)


def _type(value: object) -> str:
    if isinstance(value, int) and not -_LONG <= value < _LONG:
        return "double"
    return _TYPES[type(value)]


def _part(name: str, rows: NDArray[np.int64], values: list[Any]) -> Part:
    if name in ("boolean", "long"):
        return Part(name, rows, np.array(values, dtype=np.int64))
    if name == "double":
        return Part(name, rows, np.array(values, dtype=np.float64))
    if name != "string":
        return Part(name, rows)
    texts = [value.encode("utf-8", "surrogatepass") for value in values]
    offsets = np.zeros(len(texts) + 1, dtype=np.int64)
    np.cumsum([len(text) for text in texts], out=offsets[1:])
    return Part(name, rows, texts=Slices(np.frombuffer(b"".join(texts), dtype=np.uint8), offsets))


@functools.lru_cache(maxsize=256)
def _reader(steps: tuple[str, ...]) -> Callable[[memoryview], Any]:
    """A function from a document to the value at the path.

    The first step decodes nothing but its own member; what lies below is decoded as it is.
    """
    first, rest = steps[0], steps[1:]
    kind = msgspec.defstruct("Line", [("value", Any, msgspec.field(default=_ABSENT, name=first))])
    decode: Callable[[memoryview], Any] = msgspec.json.Decoder(kind).decode

    def read(document: memoryview) -> Any:  # noqa: ANN401 - a JSON value
        try:
            value = decode(document).value
        except msgspec.ValidationError:
            # Not an object: null, a number, a text, a list.
            return None if bytes(document).strip() == b"null" else _ABSENT
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return _MALFORMED
        for step in rest:
            if not isinstance(value, dict):
                return None if value is None else _ABSENT
            value = value.get(step, _ABSENT)
        return value

    return read
