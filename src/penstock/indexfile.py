"""Index objects: beside the object of the values, made when it is finished, committed with it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from penstock.converters.base import SCHEMALESS
from penstock.openfile import committed

if TYPE_CHECKING:
    from concurrent.futures import Future

    from penstock.model import CommittedObject, CutReason
    from penstock.openfile import Extent
    from penstock.store.upload import ObjectWriter, StoredObject


@dataclass(frozen=True, slots=True)
class IndexFile:
    """The index of a finished file. `extent`: that of the file."""

    key: str
    encoded_partition: str
    writer: ObjectWriter
    extent: Extent

    def send(self, content: bytes) -> Future[StoredObject]:
        """Upload it."""
        self.writer.write(content)
        return self.writer.close({"records": str(self.extent.records)}, self.extent.end)

    def committed(self, stored: StoredObject, reason: CutReason) -> CommittedObject:
        """This file as a commit names it."""
        made = committed(self.key, self.encoded_partition, self.extent, SCHEMALESS, stored, reason)
        return replace(made, view="index")
