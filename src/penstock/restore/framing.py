"""The wire prefix that Avro data of a file get, and whether nulls stand among them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from penstock.errors import PenstockError

if TYPE_CHECKING:
    from penstock.restore.schema_ids import SchemaIds

Part = Literal["value", "key"]
Json = Any


@dataclass(frozen=True, slots=True)
class Frame:
    """`own`: the data's schema; `nullable`: whether the file has a union of null and it, because a key is null."""

    own: Json
    prefix: bytes = b""
    nullable: bool = False


def framing(schema: Json, topic: str, part: Part, key: str, ids: SchemaIds | None) -> Frame:
    """For a file's schema. `ids`: for data that came with a registry's schema; None for texts and bytes.

    Raises:
        PenstockError: the registry does not have the schema; or the file holds something else than texts and bytes.
    """
    nullable = part == "key" and isinstance(schema, list) and len(schema) == 2 and schema[0] == "null"  # noqa: PLR2004
    if ids is not None:
        found = ids.find(schema, topic, part) if nullable else None
        nullable = nullable and found is None
        own = schema[1] if nullable else schema
        found = ids.require(own, topic, part, key) if found is None else found
        return Frame(own, b"\x00" + found.to_bytes(4, "big"), nullable)
    own = schema[1] if nullable else schema
    if own not in ("string", "bytes"):
        msg = f"`{key}` holds Avro data of another type than its connector's log says; it cannot be restored"
        raise PenstockError(msg)
    return Frame(own, b"", nullable)
