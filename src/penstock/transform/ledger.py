"""What the reading process of a task tells the writing one, past Spark: every record there is, in a local file.

Spark runs both in one task, so on one machine, and hands the writing process only the rows that a query left over. It
needs the others too: to count them, to name bad ones, to know how far the range was read. The reader writes a batch
down before Spark sees any row of it, so whoever got a row finds its batch in the file.
"""

from __future__ import annotations

import os
import pickle
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING

from penstock.spool import local_folder

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np
    from numpy.typing import NDArray

    from penstock.model import Fault, Gather, Reason, Records


@dataclass(frozen=True, slots=True)
class Page:
    """A batch as it was read, without what nobody needs of it.

    `first`: the number of its first record within the task; `range`: which range of the task's share it is of;
    `gather`: how its records are laid out. `asked`: rows that Spark was given; `refused`: why it was not given a row,
    but for null values. `fault`, `grown`: the range ends here, and why.
    """

    first: int
    range: int
    gather: Gather
    records: Records | None = None
    asked: NDArray[np.bool_] | None = None
    refused: Mapping[int, Reason] = field(default_factory=dict)
    fault: Fault | None = None
    grown: str = ""

    @property
    def end(self) -> int:
        """The number behind its last record."""
        return self.first + (0 if self.records is None else len(self.records))


_DONE = "done"


def place(job: str, task: int) -> Path:
    """Where the ledger of a task's attempt is: below Spark's own folder, which goes when Spark does."""
    return Path(local_folder()) / f"penstock-{job}-{task}"


@dataclass(slots=True)
class LedgerWriter:
    """Creates a ledger. For its owner only: it may hold keys and values."""

    path: Path
    _file: IO[bytes] = field(init=False)

    def __post_init__(self) -> None:
        self._file = os.fdopen(os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb")

    def write(self, page: Page) -> None:
        """The page can be read when this returns."""
        pickle.dump(page, self._file, protocol=5)
        self._file.flush()

    def close(self) -> None:
        """Everything was read."""
        pickle.dump(_DONE, self._file)
        self._file.close()


@dataclass(slots=True)
class LedgerReader:
    """Reads a ledger page by page, and removes it at the end."""

    path: Path
    _file: IO[bytes] | None = None

    def next(self) -> Page | None:
        """The next page, which must have been written; None behind the last.

        Raises:
            EOFError: the reading process ended before its time.
        """
        if self._file is None:
            self._file = self.path.open("rb")
        page = pickle.load(self._file)  # noqa: S301 - of the other process of this task
        return page if isinstance(page, Page) else None

    def close(self) -> None:
        """It is not wanted any more."""
        if self._file is not None:
            self._file.close()
        self.path.unlink(missing_ok=True)
