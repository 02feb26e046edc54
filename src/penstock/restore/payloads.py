"""From the bytes of a file back to the bytes that Kafka had: the way of a converter and a format, backwards.

Avro data are cut out of their blocks as they are: decoding is only for finding where the next one begins.
"""

from __future__ import annotations

import base64
import io
import json
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any

import fastavro
import msgspec

from penstock.converters.projection import raw
from penstock.errors import PenstockError
from penstock.formats.packing import unpacked
from penstock.restore.framing import framing
from penstock.restore.parquet import ParquetFile

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from penstock.restore.framing import Part
    from penstock.restore.records import PartReader
    from penstock.restore.schema_ids import SchemaIds

    Unwrap = Callable[[bytes], bytes | None]


WITH_SCHEMAS = ("avro", "json_envelope", "json_schema", "protobuf")
"""Converters whose values have a schema: in Avro and Parquet files they are data of it."""

PIECE = 1 << 20


@dataclass(frozen=True, slots=True)
class AvroFile:
    """Data of an Avro file. `ids`: for data that came with a registry's schema; None for texts and bytes.

    Files of keys with a null among them hold unions of null and the key's own type.
    """

    part: Part
    ids: SchemaIds | None

    def __call__(self, file: IO[bytes], key: str, topic: str) -> Iterator[bytes | None]:
        """Each datum behind the wire prefix, or the bytes behind the length."""
        blocks = fastavro.block_reader(unpacked(file, key))
        schema = json.loads(blocks.metadata["avro.schema"])
        frame = framing(schema, topic, self.part, key, self.ids)
        unwrap = behind_length if self.ids is None else frame.prefix.__add__
        parsed = fastavro.parse_schema(raw(schema))
        for block in blocks:
            for datum in _data(block, parsed):
                if not frame.nullable:
                    yield unwrap(datum)
                else:
                    yield None if datum == b"\x00" else unwrap(datum[1:])


def _data(block: Any, parsed: Any) -> Iterator[bytes]:  # noqa: ANN401 - fastavro's
    """The encoded data of a block."""
    stream = io.BytesIO(block.bytes_.getvalue())
    buffer, at = stream.getbuffer(), 0
    for _ in range(block.num_records):
        fastavro.schemaless_reader(stream, parsed, None)
        end = stream.tell()
        yield bytes(buffer[at:end])
        at = end


def behind_length(datum: bytes) -> bytes:
    """The content of Avro's string or bytes."""
    at = next(index for index, byte in enumerate(datum) if byte < 0x80)  # noqa: PLR2004 - the varint's last byte
    return datum[at + 1 :]


@dataclass(frozen=True, slots=True)
class LinesFile:
    """JSON documents, one a line. `unwrap`: from a document to what Kafka had."""

    unwrap: Unwrap

    def __call__(self, file: IO[bytes], key: str, topic: str) -> Iterator[bytes | None]:  # noqa: ARG002
        """The lines without their line feeds."""
        for line in unpacked(file, key):
            yield self.unwrap(line.removesuffix(b"\n"))


@dataclass(frozen=True, slots=True)
class SeparatedFile:
    """Values with a separator behind each. A null key was stored as an empty one, and comes back as null."""

    separator: bytes
    part: Part

    def __call__(self, file: IO[bytes], key: str, topic: str) -> Iterator[bytes | None]:  # noqa: ARG002
        """The values."""
        if not self.separator:
            msg = (
                f"`{key}` has no separator between its values (format.bytearray.separator was empty): it cannot be cut"
            )
            raise PenstockError(msg)
        for each in pieces(unpacked(file, key), self.separator):
            yield None if self.part == "key" and not each else each


def pieces(file: IO[bytes], separator: bytes) -> Iterator[bytes]:
    """What stands before each separator. Raises ValueError where something stands behind the last one."""
    rest = b""
    while piece := file.read(PIECE):
        *whole, rest = (rest + piece).split(separator)
        yield from whole
    if rest:
        msg = "it does not end with a separator"
        raise ValueError(msg)


def _as_is(line: bytes) -> bytes:
    return line


def _key_line(line: bytes) -> bytes | None:
    """A key that is JSON; null is a null key."""
    return None if line == b"null" else line


_TEXT = msgspec.json.Decoder(str | None)


def _text(line: bytes) -> bytes | None:
    found = _TEXT.decode(line)
    return None if found is None else found.encode()


def _base64(line: bytes) -> bytes | None:
    found = _TEXT.decode(line)
    return None if found is None else base64.b64decode(found, validate=True)


def document(converter: str) -> Unwrap:
    """From a JSON document to what Kafka had, for a converter; null is null."""
    return {"string": _text, "bytes": _base64}.get(converter, _key_line)


def part_reader(converter: str, form: str, part: Part, *, separator: bytes, ids: Callable[[], SchemaIds]) -> PartReader:
    """The reader for what a converter and a format made.

    Raises:
        PenstockError: this pair cannot be taken back.
    """
    if form == "avro" and converter in (*WITH_SCHEMAS, "string", "bytes"):
        return AvroFile(part, ids() if converter in WITH_SCHEMAS else None)
    if form in ("json", "block_gzip") and converter in ("json", *WITH_SCHEMAS):
        return LinesFile(_as_is if part == "value" else _key_line)
    if form == "json" and converter in ("string", "bytes"):
        return LinesFile(_text if converter == "string" else _base64)
    if form in ("bytes", "block_gzip") and converter in ("string", "bytes"):
        return SeparatedFile(separator, part)
    if form == "parquet":
        return ParquetFile(part, ids() if converter in WITH_SCHEMAS else None)
    msg = f"{part}s of {part}.converter `{converter}` cannot be restored from files of format `{form}`"
    raise PenstockError(msg)
