"""From a recorded configuration to the readers of what was written with it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from penstock.converters import resolve
from penstock.restore.payloads import part_reader
from penstock.restore.reading import PlainValues, Readers

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from penstock.config import SinkConfig
    from penstock.restore.plan import Carried
    from penstock.restore.schema_ids import SchemaIds


_CHANGED = {
    ("avro", "json"): "JSON: their Avro values were stored as that",
    ("json_envelope", "json"): "JSON without the schema that was around each",
    ("json_envelope", "parquet"): "Avro in Confluent's wire format: their JSON was stored as columns",
    ("json", "parquet"): "JSON made of columns: without members that are null, and without their own spelling",
    ("json_envelope", "avro"): "Avro in Confluent's wire format: their JSON was stored as that",
}


def readers(config: SinkConfig, ids: Callable[[], SchemaIds]) -> Readers:
    """The readers for one configuration. `ids`: called where Avro data need their schema's id.

    Raises:
        PenstockError: it stores values or keys in a way that cannot be taken back.
    """
    separator = config.bytearray_separator.encode()
    name = resolve(config.value_converter, config.converter_options)
    values = part_reader(name, config.format_class, "value", separator=separator, ids=ids)
    records = config.records
    keys = None
    if records.store_keys:
        converter = resolve(records.key_converter, config.key_converter_options)
        keys = part_reader(converter, records.keys_format, "key", separator=separator, ids=ids)
    forms = {"value": config.format_class, "keys": records.keys_format if keys is not None else ""}
    return Readers(PlainValues(values), keys, frozenset(view for view, form in forms.items() if form == "bytes"))


def carried(recorded: Mapping[str, str]) -> Carried:  # noqa: ARG001 - no format of today stores any
    """What the records of a value file carry, under a recorded configuration."""
    return frozenset()


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
        return _CHANGED.get((resolve(config.value_converter, config.converter_options), config.format_class))

    def __call__(self, shape: int) -> Readers:
        """Raises PenstockError as `readers`."""
        if shape not in self._made:
            self._made[shape] = readers(self.config.with_shaping(self.shapes[shape]), self.ids)
        return self._made[shape]
