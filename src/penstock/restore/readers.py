"""From a recorded configuration to the readers of what was written with it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from penstock.converters import resolve
from penstock.parts import frames
from penstock.restore.envelopes import EnvelopeRecords
from penstock.restore.frames import FramedRecords
from penstock.restore.payloads import WITH_SCHEMAS, part_reader
from penstock.restore.reading import PlainValues, Readers

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from penstock.config import SinkConfig
    from penstock.restore.plan import Carried
    from penstock.restore.records import ValueReader
    from penstock.restore.schema_ids import SchemaIds

_SEPARATED = ("bytes", "block_gzip")
_WORDS = {"avro": "Avro", "json_envelope": "JSON with schemas", "json_schema": "JSON Schema", "protobuf": "Protobuf"}


def changed(converter: str, form: str) -> str | None:
    """What values of a pair come back as, where that is not what they were."""
    if (converter, form) == ("json", "parquet"):
        return "JSON made of columns: without members that are null, and without their own spelling"
    if converter not in WITH_SCHEMAS:
        return None
    if form in ("json", "block_gzip"):
        return f"plain JSON: their values in {_WORDS[converter]} were stored as that"
    if converter != "avro":
        return f"Avro in Confluent's wire format: their values in {_WORDS[converter]} were stored as data of a schema"
    return None


def readers(config: SinkConfig, ids: Callable[[], SchemaIds]) -> Readers:
    """The readers for one configuration. `ids`: called where Avro data need their schema's id.

    Raises:
        PenstockError: it stores values or keys in a way that cannot be taken back.
    """
    name = resolve(config.value_converter, config.converter_options)
    values: ValueReader | None = _wrapped(config, ids)
    if values is None:
        values = PlainValues(part_reader(name, config.format_class, "value", separator=_separator(config), ids=ids))
    records, separated = config.records, {"value"} if config.format_class in _SEPARATED else set()
    keys = None
    if records.store_keys:
        converter = resolve(records.key_converter, config.key_converter_options)
        separator = config.bytearray_separator.encode()
        keys = part_reader(converter, records.keys_format, "key", separator=separator, ids=ids)
        separated |= {"keys"} if records.keys_format in _SEPARATED else set()
    return Readers(values, keys, frozenset(separated))


def _separator(config: SinkConfig) -> bytes:
    is_block = config.format_class == "block_gzip"
    return (config.block_gzip.value_delimiter if is_block else config.bytearray_separator).encode()


def _wrapped(config: SinkConfig, ids: Callable[[], SchemaIds]) -> ValueReader | None:
    """The reader of records that are more than their values: in envelopes, or in block-GZIP's frames."""
    if config.records.envelope:
        keys = resolve(config.records.key_converter, config.key_converter_options)
        values = resolve(config.value_converter, config.converter_options)
        form: Any = config.format_class  # one of those with fields, as the configuration's rules see to
        return EnvelopeRecords(form, values, keys, ids)
    return _framed(config)


def _framed(config: SinkConfig) -> FramedRecords | None:
    """The reader of block-GZIP's frames, where they are more than values with a delimiter behind each."""
    chosen = frames(config)
    is_more = config.format_class == "block_gzip" and (chosen.lengths or chosen.keys)
    return FramedRecords(chosen) if is_more else None


def carried(config: SinkConfig) -> Carried:
    """What the records of a value file of this configuration carry."""
    if config.records.envelope:
        return EnvelopeRecords.carries
    framed = _framed(config)
    return frozenset() if framed is None else framed.carried


@dataclass(frozen=True, slots=True)
class ByShape:
    """The readers of each recorded configuration, made when a file of it is first read."""

    config: SinkConfig
    shapes: Sequence[Mapping[str, str]]
    ids: Callable[[], SchemaIds]
    _made: dict[int, Readers] = field(default_factory=dict)

    def changed(self, shape: int) -> str | None:
        """What values come back as, where that is not what they were."""
        config = self.config.with_shaping(self.shapes[shape])
        return changed(resolve(config.value_converter, config.converter_options), config.format_class)

    def __call__(self, shape: int) -> Readers:
        """Raises PenstockError as `readers`."""
        if shape not in self._made:
            self._made[shape] = readers(self.config.with_shaping(self.shapes[shape]), self.ids)
        return self._made[shape]
