"""How the column `value` is made: binary as it is, or decoded to a type."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np
import pyarrow as pa

from penstock.model import Gather
from penstock.sources.columns import binary

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from penstock.converters.base import RowFault
    from penstock.model import Records


class Decoder(Protocol):
    """Decodes the values of a query's records in one process; may keep what it learns of schemas.

    `seen`: takes the types of values that may have more than the column's type; None where nobody wants them.
    """

    seen: set[pa.DataType] | None

    @property
    def gather(self) -> Gather:
        """How the reader has to lay out values for it."""
        ...

    def decode(self, records: Records) -> pa.Array:
        """One value per record, of the column's type. Raises DataError, RegistryUnavailable."""
        ...

    def looked_at(self, records: Records) -> tuple[pa.Array, list[RowFault], NDArray[np.bool_]]:
        """(one value per record, what cannot be decoded, which values there are). Raises RegistryUnavailable."""
        ...


class Values(Protocol):
    """What the column `value` is; pickled to the executors."""

    @property
    def type(self) -> pa.DataType:
        """Its Arrow type."""
        ...

    def opened(self) -> Decoder:
        """What decodes it, made in the process that reads."""
        ...


@dataclass(frozen=True, slots=True)
class Plain:
    """Values as they are."""

    type: pa.DataType = pa.binary()  # noqa: RUF009 - Arrow types are values

    def opened(self) -> PlainDecoder:
        """There is nothing to open."""
        return PlainDecoder()


@dataclass(slots=True)
class PlainDecoder:
    """Leaves values as they are. `seen`: there is nothing to see."""

    gather: Gather = Gather()  # noqa: RUF009
    seen: set[pa.DataType] | None = None

    def decode(self, records: Records) -> pa.Array:
        """No byte is copied."""
        return binary(records.values)

    def looked_at(self, records: Records) -> tuple[pa.Array, list[RowFault], NDArray[np.bool_]]:
        """Every value can be decoded."""
        valid = records.values.valid
        return binary(records.values), [], np.ones(len(records), np.bool_) if valid is None else valid
