"""The family of partitioners: one file each, found by the short name of `partitioner.class`."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.partitioners.combined import CombinedPartitioner, SchemaNamePartitioner
from penstock.partitioners.default import DefaultPartitioner
from penstock.partitioners.field import FieldPartitioner
from penstock.partitioners.joda import Names, PathFormat
from penstock.partitioners.template import Template, TemplatePartitioner
from penstock.partitioners.template import parts as template_parts
from penstock.partitioners.time import DAILY_MS, HOURLY_MS, TimePartitioner, daily_format, hourly_format
from penstock.partitioners.zones import Zone

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from penstock.partitioners.base import Partitioner

_FORMAT_MS = 1


@dataclass(frozen=True, slots=True)
class PartitionerOptions:
    """What partitioners take from the configuration. `properties`: all of them, for custom ones."""

    fields: tuple[str, ...] = ()
    field_names_in_path: bool = True
    duration_ms: int = -1
    path_format: str = ""
    locale: str = ""
    timezone: str = ""
    delim: str = "/"
    schema_affix: str = "NONE"
    template: str = ""
    one_topic: bool = False
    properties: Mapping[str, str] | None = None

    def timed(self, duration_ms: int, pattern: str) -> TimePartitioner:
        """A time partitioner in this locale and zone; one delimiter at the end of the pattern is dropped."""
        names = Names.of(self.locale or "en")
        return TimePartitioner(
            duration_ms, PathFormat.parse(pattern.removesuffix(self.delim), names), Zone.parse(self.timezone or "UTC")
        )

    def by_fields(self, *, with_names: bool) -> Partitioner:
        """The fields in their order."""
        return CombinedPartitioner(tuple(FieldPartitioner(name, with_names) for name in self.fields), self.delim)


PARTITIONERS: dict[str, Callable[[PartitionerOptions], Partitioner]] = {
    "default": lambda _: DefaultPartitioner(),
    "field": lambda o: o.by_fields(with_names=True),
    "time": lambda o: o.timed(o.duration_ms, o.path_format),
    "daily": lambda o: o.timed(DAILY_MS, daily_format(o.delim)),
    "hourly": lambda o: o.timed(HOURLY_MS, hourly_format(o.delim)),
    "fieldandtime": lambda o: CombinedPartitioner(
        (o.by_fields(with_names=o.field_names_in_path), o.timed(o.duration_ms, o.path_format)), o.delim
    ),
}


def build(name: str, options: PartitionerOptions) -> Partitioner:
    """The partitioner of that short name, or the class `module:Class`, made with its properties.

    Raises:
        ValueError: an option that it needs cannot be used, or there is no such class; says which.
    """
    if options.template:
        template = Template.parse(options.template, one_topic=options.one_topic)
        made = template_parts(
            template,
            lambda field: FieldPartitioner(field, with_name=False),
            lambda pattern: options.timed(_FORMAT_MS, pattern),
        )
        return TemplatePartitioner(template, made)
    partitioner: Partitioner = custom(name)(options.properties or {}) if ":" in name else PARTITIONERS[name](options)
    if options.schema_affix == "PREFIX":
        return CombinedPartitioner((SchemaNamePartitioner(), partitioner), options.delim)
    if options.schema_affix == "SUFFIX":
        return CombinedPartitioner((partitioner, SchemaNamePartitioner()), options.delim)
    return partitioner


def custom(name: str) -> Callable[[Mapping[str, str]], Partitioner]:
    """The class that `module:Class` names; it is made from the connector's properties.

    Raises:
        ValueError: it cannot be imported; says why.
    """
    module, _, attribute = name.partition(":")
    try:
        found: Callable[[Mapping[str, str]], Partitioner] = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        msg = f"`{name}` cannot be imported ({error}); it must be on PYTHONPATH here and on the executors"
        raise ValueError(msg) from error
    return found
