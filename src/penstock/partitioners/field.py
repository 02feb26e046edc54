"""FieldPartitioner: values of fields as `name=value` (reference s3-sink-connector 3)."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from penstock.keys import escaped
from penstock.partitioners.base import Labels, Refusal

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from penstock.columns import Part
    from penstock.model import Slices
    from penstock.partitioners.base import Batch

_NAMED = ("string", "enum", "uuid")
_NUMBERS = ("int", "long", "boolean")
_LONGEST, _KEPT_BYTES = 256, 220
_CACHED = 65_536


@dataclass(frozen=True, slots=True)
class FieldPartitioner:
    """`name=value`, or the value alone without `with_name`. Two fields are two of these in a CombinedPartitioner."""

    name: str
    with_name: bool = True
    _texts: dict[bytes, str] = field(default_factory=dict, compare=False)

    def encode(self, batch: Batch) -> Labels:
        """One label for each value that occurs."""
        parts = batch.field(self.name)
        if len(parts) == 1 and (labels := self._alone(parts[0])) is not None:
            return labels
        codes = np.zeros(len(batch.records), dtype=np.int32)
        names: list[str] = []
        refusals: list[Refusal] = []
        for part in parts:
            known = self._values(part)
            if known is None:
                reason = self._reason(part)
                refusals.extend(Refusal(row, reason) for row in part.rows.tolist())
                continue
            mine, values = known
            codes[part.rows] = mine + len(names)
            names += values
        # Texts and numbers of different parts may look the same.
        distinct = {name: code for code, name in enumerate(dict.fromkeys(names))}
        merged = np.array([distinct[name] for name in names] or [0], dtype=np.int32)
        refusals.sort(key=lambda refusal: refusal.row)
        return Labels(tuple(distinct) or ("",), merged[codes], tuple(refusals))

    def _alone(self, part: Part) -> Labels | None:
        """The labels where every row is of one type, which is the usual case."""
        known = self._values(part)
        if known is None:
            return None
        codes, names = known
        if len(set(names)) < len(names):
            return None
        return Labels(tuple(names), codes if len(names) > 1 else None)

    def _values(self, part: Part) -> tuple[NDArray[np.int32], list[str]] | None:
        """The labels of a part, as codes and names; None where its type can be no label."""
        if part.type == "null" or (part.type == "absent" and not part.by_schema):
            return np.zeros(len(part.rows), dtype=np.int32), [self._label("null")]
        if part.type in _NUMBERS and part.numbers is not None:
            values, inverse = np.unique(part.numbers, return_inverse=True)
            shown = ["false", "true"] if part.type == "boolean" else None
            texts = [shown[int(v)] if shown else str(v) for v in values.tolist()]
            return inverse.astype(np.int32), [self._label(text) for text in texts]
        if part.type in _NAMED and part.texts is not None:
            codes, raw = _distinct(part.texts)
            return codes, [self._text(each) for each in raw]
        return None

    def _text(self, raw: bytes) -> str:
        text = self._texts.get(raw)
        if text is None:
            if len(self._texts) >= _CACHED:
                self._texts.clear()
            text = self._texts[raw] = self._label(safe(raw.decode("utf-8", "replace")))
        return text

    def _label(self, text: str) -> str:
        return f"{self.name}={text}" if self.with_name else text

    def _reason(self, part: Part) -> str:
        what = f"partition.field.name `{self.name}`"
        if part.type == "absent":
            return f"its schema has no {what}; name a field that every schema of the topic has"
        if part.type == "malformed":
            return f"its value ends or errs before {what}"
        return (
            f"{what} is of type {part.type}, which cannot be part of a path; use a field that is an int, a long, a "
            "boolean, a string or an enum, or a time based partitioner for times"
        )


def safe(value: str) -> str:
    """A value as it may stand in an object's name: as it is, but for what would make the name unusable.

    What `escaped` encodes is encoded; what is longer than 256 bytes is cut and ends in a hash of the whole, so that
    different values stay different.
    """
    text = escaped(value)
    raw = text.encode()
    if len(raw) <= _LONGEST:
        return text
    digest = hashlib.sha256(raw).hexdigest()[:16]
    return f"{raw[:_KEPT_BYTES].decode('utf-8', 'ignore')}...{digest}"


def _distinct(texts: Slices) -> tuple[NDArray[np.int32], list[bytes]]:
    """Codes and values, in the order in which the values appear first."""
    offsets = np.ascontiguousarray(texts.offsets, dtype=np.int64)
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(np.ascontiguousarray(texts.data))]
    encoded = pa.Array.from_buffers(pa.large_binary(), len(texts), buffers).dictionary_encode()
    return encoded.indices.to_numpy().astype(np.int32), encoded.dictionary.to_pylist()
