"""Values laid out as the reader does it, for tests of converters and formats."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from penstock import converters
from penstock.formats import FORMATS, FormatOptions
from penstock.model import Records, Slices, TopicPartition

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock.converters.base import Converted, Converter
    from penstock.formats.base import Format

TP = TopicPartition("t", 0)


def slices(values: Sequence[bytes | None], separator: bytes = b"") -> Slices:
    laid = [b"" if value is None else value + separator for value in values]
    offsets = np.zeros(len(laid) + 1, dtype=np.int64)
    np.cumsum([len(each) for each in laid], out=offsets[1:])
    valid = None if None not in values else np.array([value is not None for value in values], dtype=np.bool_)
    return Slices(np.frombuffer(b"".join(laid), dtype=np.uint8), offsets, valid)


def records(values: Sequence[bytes | None], separator: bytes = b"", start: int = 0) -> Records:
    count = len(values)
    offsets = np.arange(start, start + count, dtype=np.int64)
    return Records(TP, offsets, np.zeros(count, dtype=np.int64), slices(values, separator), start + count)


def pair(converter: str, file_format: str, separator: bytes = b"\n", codec: str = "null") -> tuple[Converter, Format]:
    """A converter and a format that fit, put together as the pipeline does it."""
    made = FORMATS[file_format](FormatOptions(avro_codec=codec, bytes_separator=separator))
    kind = converters.negotiate(converter, file_format, made.accepts)
    return converters.build(converter, kind, {}, converters.ConverterOptions(separator=made.separator)), made


def rows(converted: Converted) -> list[bytes | None]:
    """Each row in its kind; None for nulls and for those at fault."""
    chunk, bad = converted.chunk, {fault.row for fault in converted.faults}
    if converted.nulls is not None:
        bad |= set(np.flatnonzero(converted.nulls).tolist())
    spans = pairwise(chunk.offsets.tolist())
    return [None if row in bad else chunk.data[a:b].tobytes() for row, (a, b) in enumerate(spans)]


def file_of(
    converter: Converter, file_format: Format, values: Sequence[bytes | None], sizes: Sequence[int] = ()
) -> bytes:
    """The file of all good rows, handed over in batches of `sizes` and then the rest."""
    encoder, out, at = file_format.encoder(converter.schema(0), "topics/t/key"), [], 0
    for size in (*sizes, len(values)):
        part = values[at : at + size]
        if part:
            batch = records(part, converter.gather.separator, at)
            converted = converter.convert(batch)
            chunk = replace(converted.chunk, positions=batch.offsets)
            good = np.array([row for row, data in enumerate(rows(converted)) if data is not None], dtype=np.int64)
            chosen = slice(0, len(part)) if len(good) == len(part) else good
            out += [bytes(each) for each in encoder.write(chunk, chosen)]
        at += size
    return b"".join([*out, *(bytes(each) for each in encoder.finish())])
