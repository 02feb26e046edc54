"""What a record has beside its value, as fields: `_key`, `_header.NAME`, `_topic`, `_partition`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from penstock.columns import Part
from penstock.compiled import compiled
from penstock.fields.avro_walk import zigzag
from penstock.model import Slices

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from penstock.columns import Field
    from penstock.model import Records

    Longs = NDArray[np.int64]
    Bytes = NDArray[np.uint8]

KEY, HEADER, TOPIC, PARTITION = "_key", "_header.", "_topic", "_partition"
_NULL, _ABSENT, _MALFORMED = -1, -2, -3


def is_pseudo(path: str) -> bool:
    """Whether a path names none of the value's fields."""
    return path in (KEY, TOPIC, PARTITION) or path.startswith(HEADER)


def pseudo_field(records: Records, path: str) -> Field:
    """The field of a path for which `is_pseudo` holds. The reader must have laid out keys or headers for theirs."""
    rows = np.arange(len(records))
    if path == PARTITION:
        return (Part("int", rows, np.full(len(rows), records.tp.partition, dtype=np.int64)),)
    if path == TOPIC:
        return (Part("string", rows, texts=_repeated(records.tp.topic.encode(), len(rows))),)
    found = records.keys if path == KEY else records.headers
    if found is None:
        msg = f"the reader was not asked for what `{path}` needs"
        raise ValueError(msg)
    if path == KEY:
        valid = np.ones(len(rows), dtype=np.bool_) if found.valid is None else found.valid
        return _texts(found, np.where(valid, 0, _NULL), found.offsets[:-1], np.diff(found.offsets))
    name = np.frombuffer(path.removeprefix(HEADER).encode() or b"\x00", dtype=np.uint8)
    states, starts, sizes = (np.zeros(len(rows), dtype=np.int64) for _ in range(3))
    _last_header(found.data, found.offsets, name, states, starts, sizes)
    return _texts(found, states, starts, sizes)


def _texts(source: Slices, states: Longs, starts: Longs, sizes: Longs) -> Field:
    """Parts for what is there (text, or bytes that are no text), for nulls and for what is absent."""
    parts = []
    for state, name in ((_NULL, "null"), (_ABSENT, "absent"), (_MALFORMED, "malformed")):
        mine = np.flatnonzero(states == state)
        if len(mine):
            parts.append(Part(name, mine))
    rows = np.flatnonzero(states == 0)
    if not len(rows):
        return tuple(parts)
    raw = [source.data[s : s + n].tobytes() for s, n in zip(starts[rows].tolist(), sizes[rows].tolist(), strict=True)]
    texts = np.array([_is_text(each) for each in raw], dtype=np.bool_)
    for wanted, name in ((True, "string"), (False, "bytes")):
        mine = np.flatnonzero(texts == wanted)
        if len(mine):
            parts.append(Part(name, rows[mine], texts=_joined([raw[at] for at in mine.tolist()])))
    return tuple(parts)


def _is_text(raw: bytes) -> bool:
    try:
        raw.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _joined(raw: list[bytes]) -> Slices:
    offsets = np.zeros(len(raw) + 1, dtype=np.int64)
    np.cumsum([len(each) for each in raw], out=offsets[1:])
    return Slices(np.frombuffer(b"".join(raw), dtype=np.uint8), offsets)


def _repeated(text: bytes, count: int) -> Slices:
    return Slices(np.frombuffer(text * count, dtype=np.uint8), np.arange(count + 1, dtype=np.int64) * len(text))


@compiled
def _last_header(data: Bytes, offsets: Longs, name: Bytes, states: Longs, starts: Longs, sizes: Longs) -> None:
    """Where the value of each record's last header of that name is, as Kafka's `lastHeader` finds it."""
    for row in range(len(states)):
        at, end = offsets[row], offsets[row + 1]
        count, at = zigzag(data, at, end)
        states[row] = _ABSENT if at >= 0 or end == offsets[row] else _MALFORMED
        for _ in range(max(count, 0)):
            size, at = zigzag(data, at, end)
            if at < 0 or not 0 <= size <= end - at:
                states[row] = _MALFORMED
                break
            same = size == len(name)
            for i in range(len(name)):
                same = same and data[at + i] == name[i]
            length, at = zigzag(data, at + size, end)
            if at < 0 or length > end - at:
                states[row] = _MALFORMED
                break
            if same:
                states[row] = _NULL if length < 0 else 0
                starts[row], sizes[row] = at, max(length, 0)
            at += max(length, 0)


def warm() -> None:
    """Compile, or load from numba's cache, what `pseudo_field` calls."""
    none = np.zeros(0, dtype=np.int64)
    _last_header(
        np.zeros(0, dtype=np.uint8), np.zeros(1, dtype=np.int64), np.zeros(1, dtype=np.uint8), none, none, none
    )
