"""What open files hold before it can be sent: in memory within one budget of the task, beyond it on local disk.

The disk's share lies in blocks of one file without a name, so that nothing of it stays, however the process ends, and
a block is used again once it was read back.
"""

from __future__ import annotations

import io
import os
import tempfile
from dataclasses import dataclass, field
from typing import IO, TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

BLOCK_SIZE = 64 * 1024
DEFAULT_LIMIT = 64 * 1024 * 1024
_KEPT = 0.75  # of the limit, after a spill: so that not every write spills


@dataclass(slots=True, eq=False)
class Budget:
    """How many bytes the spools of a task may hold in memory together. For one thread."""

    limit: int = DEFAULT_LIMIT
    used: int = 0
    spilled: int = 0
    _spools: dict[int, Spool] = field(default_factory=dict)
    _file: IO[bytes] | None = None
    _free: list[int] = field(default_factory=list)
    _blocks: int = 0

    def spool(self) -> Spool:
        """An empty one."""
        return Spool(self)

    def close(self) -> None:
        """Nothing of any spool is wanted any more."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def _grew(self, spool: Spool, size: int) -> None:
        """A spool took bytes; the largest go to disk when there are too many."""
        self._spools[id(spool)] = spool
        self.used += size
        if self.used > self.limit:
            for each in sorted(self._spools.values(), key=lambda one: -len(one.memory)):
                if self.used <= self.limit * _KEPT:
                    return
                each.spill()

    def _shrank(self, spool: Spool, size: int) -> None:
        self._spools.pop(id(spool), None)
        self.used -= size

    def _put(self, data: memoryview) -> int:
        """Write a block; its number."""
        if self._file is None:
            local = os.environ.get("SPARK_LOCAL_DIRS", "").partition(",")[0]
            self._file = tempfile.TemporaryFile(  # noqa: SIM115 - open as long as the task
                prefix="penstock-", buffering=0, dir=local or None
            )
        if not self._free:
            self._free.append(self._blocks)
            self._blocks += 1
        number = self._free.pop()
        at = number * BLOCK_SIZE
        while data:
            written = os.pwrite(self._file.fileno(), data, at)
            data, at = data[written:], at + written
        self.spilled += 1
        return number

    def _get(self, number: int, size: int) -> bytes:
        """Read a block back; it is free then."""
        assert self._file is not None  # noqa: S101 - a block was written
        data = os.pread(self._file.fileno(), size, number * BLOCK_SIZE)
        if len(data) != size:
            msg = f"the spill file lost {size - len(data)} bytes"
            raise OSError(msg)
        self._free.append(number)
        return data


@dataclass(slots=True, eq=False)
class Spool:
    """Bytes that are appended, and taken out together, in their order."""

    budget: Budget
    memory: bytearray = field(default_factory=bytearray)
    _blocks: list[tuple[int, int]] = field(default_factory=list)
    _on_disk: int = 0

    def __len__(self) -> int:
        return self._on_disk + len(self.memory)

    def write(self, data: bytes | memoryview) -> None:
        """Append bytes; they are copied."""
        before = len(self.memory)
        self.memory += data
        self.budget._grew(self, len(self.memory) - before)  # noqa: SLF001 - two halves of one thing

    def take(self) -> Iterator[bytes]:
        """All bytes in pieces; each is gone once it was given."""
        blocks, self._blocks, self._on_disk = self._blocks, [], 0
        memory = self._emptied()
        for number, size in blocks:
            yield self.budget._get(number, size)  # noqa: SLF001 - as above
        if memory:
            yield bytes(memory)

    def reader(self) -> IO[bytes]:
        """All bytes as a file that is read once."""
        return io.BufferedReader(_Pieces(self.take()), BLOCK_SIZE)

    def clear(self) -> None:
        """Nothing of it is wanted."""
        for number, _ in self._blocks:
            self.budget._free.append(number)  # noqa: SLF001 - as above
        self._blocks, self._on_disk = [], 0
        self._emptied()

    def spill(self) -> None:
        """Move what is in memory to disk."""
        memory = self._emptied()
        with memoryview(memory) as view:
            for start in range(0, len(view), BLOCK_SIZE):
                piece = view[start : start + BLOCK_SIZE]
                self._blocks.append((self.budget._put(piece), len(piece)))  # noqa: SLF001 - as above
        self._on_disk += len(memory)

    def _emptied(self) -> bytearray:
        memory, self.memory = self.memory, bytearray()
        self.budget._shrank(self, len(memory))  # noqa: SLF001 - as above
        return memory


class _Pieces(io.RawIOBase):
    """Pieces of bytes as a file."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        super().__init__()
        self._pieces = pieces
        self._rest = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any, /) -> int:  # noqa: ANN401 - any writable buffer
        while not self._rest:
            piece = next(self._pieces, None)
            if piece is None:
                return 0
            self._rest = memoryview(piece)
        size = min(len(buffer), len(self._rest))
        buffer[:size], self._rest = self._rest[:size], self._rest[size:]
        return size
