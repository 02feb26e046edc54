"""One declaration per property, carried by the dataclass field that holds its value.

Everything else is derived from it: reading and checking, the messages, the suggestion for a misspelt name, what the
state log records, and the reference in docs/configuration.md.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from penstock.config.kinds import Hidden, one_of
from penstock.config.secret import HIDDEN

if TYPE_CHECKING:
    from collections.abc import Mapping

    from penstock.config.kinds import Kind
    from penstock.config.properties import Value

T = TypeVar("T", bound=Any)
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
    """A dataclass field that holds a dataclass of properties."""
    return field(default_factory=holder, metadata={_GROUP: holder})


def declarations(holder: type) -> dict[str, Property]:
    """Field name -> declaration, for the fields of a dataclass that hold a property; `group.field` within groups."""
    found: dict[str, Property] = {}
    for each in fields(holder):
        if _KEY in each.metadata:
            found[each.name] = each.metadata[_KEY]
        elif _GROUP in each.metadata:
            inner = declarations(each.metadata[_GROUP])
            found |= {f"{each.name}.{name}": declared for name, declared in inner.items()}
    return found


def arguments(holder: type, values: Mapping[str, Any]) -> dict[str, Any]:
    """What a dataclass is made from: `values` by the names of `declarations`, put together to its groups."""
    given = {name: value for name, value in values.items() if "." not in name}
    for each in fields(holder):
        if _GROUP in each.metadata:
            kind, prefix = each.metadata[_GROUP], f"{each.name}."
            inner = {name.removeprefix(prefix): v for name, v in values.items() if name.startswith(prefix)}
            given[each.name] = kind(**arguments(kind, inner))
    return given


def replaced(holder: T, values: Mapping[str, Any]) -> T:
    """A copy of a dataclass of properties with `values` by the names of `declarations`; all others stay."""
    given = {name: value for name, value in values.items() if "." not in name}
    for each in fields(holder):
        if _GROUP in each.metadata:
            prefix = f"{each.name}."
            inner = {name.removeprefix(prefix): v for name, v in values.items() if name.startswith(prefix)}
            given[each.name] = replaced(getattr(holder, each.name), inner)
    return replace(holder, **given)


def text_of(value: object) -> str:
    """A value as it is written in a properties file."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return ",".join(map(str, value))
    return "" if value is None else str(value)
