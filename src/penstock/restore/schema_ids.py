"""Schema ids for data that were stored without theirs: the registry knows which schema a file's is."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

import fastavro
from fastavro.schema import SchemaParseException, UnknownType, to_parsing_canonical_form

from penstock.converters.projection import raw
from penstock.converters.schemas import file_schema
from penstock.errors import PenstockError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from penstock.registry import Registered
    from penstock.restore.framing import Part

    Json = Any


class Versions(Protocol):
    """What is asked of a registry. Each raises `RegistryUnavailable`."""

    def versions(self, subject: str) -> Sequence[tuple[int, Registered]]:
        """The versions of a subject with their ids, the newest first; none where there is no such subject."""
        ...

    def register(self, subject: str, text: str) -> int:
        """Register a schema; its id. Raises PenstockError where the registry refuses it."""
        ...


@dataclass(slots=True)
class SchemaIds:
    """Finds ids by schema. `renamed`: source topic -> the topic it is restored to; `may_register`: see `require`."""

    registry: Versions
    renamed: dict[str, str]
    may_register: bool = False
    _versions: dict[str, Sequence[tuple[int, Registered]]] = field(default_factory=dict)
    _found: dict[tuple[str, str, Part], int | None] = field(default_factory=dict)

    def find(self, schema: Json, topic: str, part: Part) -> int | None:
        """The id of the schema that a file of a topic carries, from the subject of the topic, or of its new name."""
        text = json.dumps(schema, separators=(",", ":"), ensure_ascii=False)
        key = (text, topic, part)
        if self._found.get(key) is None:
            subjects = dict.fromkeys((f"{topic}-{part}", f"{self.renamed.get(topic, topic)}-{part}"))
            ids = (same(text, self._of(subject)) for subject in subjects)
            self._found[key] = next((found for found in ids if found is not None), None)
        return self._found[key]

    def require(self, schema: Json, topic: str, part: Part, key: str) -> int:
        """As `find`; where no subject has the schema, it is registered under the new topic's, if that may be.

        Raises:
            PenstockError: there is none, and none may be registered.
        """
        found = self.find(schema, topic, part)
        if found is not None:
            return found
        target = f"{self.renamed.get(topic, topic)}-{part}"
        if not self.may_register:
            msg = (
                f"the Schema Registry has the schema of `{key}` under neither `{topic}-{part}` nor `{target}`; "
                f"--register-schemas registers it under `{target}`"
            )
            raise PenstockError(msg)
        text = json.dumps(schema, separators=(",", ":"), ensure_ascii=False)
        self._found[text, topic, part] = made = self.registry.register(target, text)
        return made

    def _of(self, subject: str) -> Sequence[tuple[int, Registered]]:
        if subject not in self._versions:
            self._versions[subject] = self.registry.versions(subject)
        return self._versions[subject]


def same(text: str, versions: Sequence[tuple[int, Registered]]) -> int | None:
    """The id of the version that a file's schema was made from; else of the newest one whose data look the same."""
    avro = [(number, each) for number, each in versions if each.kind == "AVRO"]
    for schema_id, each in avro:
        for meta in (True, False):
            if file_schema(each.text, each.version, connect_meta_data=meta, named=each.named).text == text:
                return schema_id
    wanted = _canonical(json.loads(text))
    for schema_id, each in avro:
        inlined = file_schema(each.text, None, connect_meta_data=False, named=each.named).text
        if wanted is not None and _canonical(json.loads(inlined)) == wanted:
            return schema_id
    return None


def standalone(schema: Json, known: Mapping[str, Json]) -> Json:
    """A schema by itself: types that stand outside of it, under their full names in `known`, are written out in it."""
    try:
        fastavro.parse_schema(raw(schema))
    except UnknownType:
        return json.loads(file_schema(json.dumps(schema), None, connect_meta_data=False, named=dict(known)).text)
    return schema


def _canonical(schema: Json) -> str | None:
    """The form in which two schemas are equal if their data are."""
    try:
        return str(to_parsing_canonical_form(fastavro.parse_schema(schema)))
    except (SchemaParseException, KeyError, TypeError, ValueError):
        return None
