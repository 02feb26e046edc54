"""Avro data that do not come from Kafka: their schema is known beforehand, and no registry is asked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.converters.avro import AvroConverter
from penstock.converters.schemas import file_schema
from penstock.registry import Registered

if TYPE_CHECKING:
    from penstock.converters.base import Kind
    from penstock.converters.connect_json import DecimalFormat


@dataclass(frozen=True, slots=True)
class FixedSchema:
    """Stands where a registry does: every id is that schema."""

    text: str
    url: str = ""

    def schema(self, schema_id: int, subject: str) -> Registered:  # noqa: ARG002 - there is only one
        """That schema."""
        return Registered(self.text, "AVRO", None)


def fixed(text: str, kind: Kind, *, connect_meta_data: bool, decimals: DecimalFormat) -> AvroConverter:
    """A converter for data of the schema `text`, which every `Records.schema_ids` but -2 names."""
    known = file_schema(text, None, connect_meta_data=connect_meta_data, named={})
    return AvroConverter(kind, FixedSchema(text), connect_meta_data, decimals, _schemas=[known])
