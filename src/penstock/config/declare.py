"""One declaration per property, carried by the dataclass field that holds its value.

Everything else is derived from it: reading and checking, the messages, the suggestion for a misspelt name, what the
state log records, and the reference in docs/configuration.md.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, Literal

from penstock.config.kinds import Hidden, one_of
from penstock.config.secret import HIDDEN

if TYPE_CHECKING:
    from collections.abc import Mapping

    from penstock.config.kinds import Kind
    from penstock.config.properties import Value

Origin = Literal["Confluent", "Connect", "Kafka", "Spark", "Penstock"]
_KEY, _GROUP = "property", "group"


@dataclass(frozen=True, slots=True, kw_only=True)
class Property:
    """What there is to know about one property.

    `default`: its text, or None where there is no value. `shapes`: it decides what files hold or where they end, so the
    state log records it. `supported`: the values that are honoured so far, all of them if None. `refused`:
    values that never will be, with the end of the sentence that says why. `only_with`: another property and those of
    its values without which this one has no effect, in the connector as well.
    """

    name: str
    kind: Kind
    doc: str
    default: str | None = None
    required: bool = False
    shapes: bool = False
    origin: Origin = "Confluent"
    supported: tuple[object, ...] | None = None
    refused: Mapping[object, str] = field(default_factory=dict)
    only_with: tuple[str, tuple[object, ...]] | None = None
    aliases: tuple[str, ...] = ()

    @property
    def secret(self) -> bool:
        """Whether no message may show its value."""
        return isinstance(self.kind, Hidden)

    @property
    def default_value(self) -> Any:  # noqa: ANN401 - each property has its own type
        """The value where nothing is given."""
        return None if self.default is None else self.kind.parse(self.default)

    def find(self, given: Mapping[str, Value]) -> tuple[str, Value] | None:
        """The name it is given by and the value; a blank text counts as not given where there is no default."""
        for name in (self.name, *self.aliases):
            value = given.get(name)
            if value is not None and (value.text.strip() or self.default is not None or self.required):
                return name, value
        return None

    def shown(self, value: Value) -> str:
        """What a message may show of a value."""
        return HIDDEN if self.secret else value.shown

    @property
    def supported_words(self) -> str:
        """The values that are honoured so far, as a user writes them; empty where it can only be left out."""
        words = [text_of(value) for value in self.supported or () if value not in (None, "")]
        return one_of(tuple(f"`{word}`" for word in words)) if words else ""


def prop(name: str, kind: Kind, **options: Any) -> Any:  # noqa: ANN401 - stands where a field's default does
    """A dataclass field that holds the value of a property; `options` are those of `Property`."""
    declared = Property(name=name, kind=kind, **options)
    if declared.required:
        return field(metadata={_KEY: declared})
    return field(default=declared.default_value, metadata={_KEY: declared})


def group(holder: type) -> Any:  # noqa: ANN401 - stands where a field's default does
    """A dataclass field that holds a dataclass of further properties."""
    return field(metadata={_GROUP: holder})


def declarations(holder: type) -> dict[str, Property]:
    """Field name -> declaration, for the fields of a dataclass that hold a property."""
    return {each.name: each.metadata[_KEY] for each in fields(holder) if _KEY in each.metadata}


def every(holder: type) -> tuple[Property, ...]:
    """The declarations of a dataclass and of its groups, in their order."""
    groups = (each.metadata[_GROUP] for each in fields(holder) if _GROUP in each.metadata)
    return (*declarations(holder).values(), *(found for inner in groups for found in every(inner)))


def values_of(holder: type, parsed: Mapping[str, Any]) -> dict[str, Any]:
    """Field name -> value, groups filled. `parsed`: the values by property name."""
    values = {name: parsed[each.name] for name, each in declarations(holder).items()}
    groups = {each.name: each.metadata[_GROUP] for each in fields(holder) if _GROUP in each.metadata}
    return {**values, **{name: inner(**values_of(inner, parsed)) for name, inner in groups.items()}}


def text_of(value: object) -> str:
    """A value as it is written in a properties file."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return ",".join(map(str, value))
    return "" if value is None else str(value)
