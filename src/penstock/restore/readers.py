"""From a recorded configuration to the readers of what was written with it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from penstock.config.classes import CONVERTERS
from penstock.config.kinds import Named
from penstock.restore.payloads import part_reader
from penstock.restore.reading import PlainValues, Readers

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from penstock.config import SinkConfig
    from penstock.restore.plan import Carried
    from penstock.restore.schema_ids import SchemaIds


def readers(config: SinkConfig, ids: Callable[[], SchemaIds]) -> Readers:
    """The readers for one configuration. `ids`: called where Avro data need their schema's id.

    Raises:
        PenstockError: it stores values or keys in a way that cannot be taken back.
    """
    separator = config.bytearray_separator.encode()
    values = part_reader(config.value_converter, config.format_class, "value", separator=separator, ids=ids)
    records = config.records
    keys = None
    if records.store_keys:
        converter = Named(CONVERTERS).parse(records.key_converter or "string")
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

    def is_decoded(self, shape: int) -> bool:
        """Whether Avro values were stored as JSON, so that they come back as that."""
        config = self.config.with_shaping(self.shapes[shape])
        return (config.value_converter, config.format_class) == ("avro", "json")

    def __call__(self, shape: int) -> Readers:
        """Raises PenstockError as `readers`."""
        if shape not in self._made:
            self._made[shape] = readers(self.config.with_shaping(self.shapes[shape]), self.ids)
        return self._made[shape]
