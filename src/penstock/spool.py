"""What open files hold before it can be sent: in memory within one budget of the task, beyond it on local disk.

The disk's share lies in blocks of one file without a name, so that nothing of it stays, however the process ends.
Blocks are used again, on disk and in memory: memory that is new to a process costs more than copying into it
(decision 0014).
"""

from __future__ import annotations

import io
import os
import tempfile
from collections import deque
from dataclasses import dataclass, field
from typing import IO, TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

BLOCK_SIZE = 64 * 1024
DEFAULT_LIMIT = 64 * 1024 * 1024
_KEPT = 0.75  # of the limit, after a spill: so that not every write spills
_LEAST = 512  # bytes that the first block of a spool takes


def local_folder() -> str:
    """Where files of a task may be: Spark's own folder, which goes when Spark does, or that for temporary files."""
    return os.environ.get("SPARK_LOCAL_DIRS", "").partition(",")[0] or tempfile.gettempdir()


@dataclass(frozen=True, slots=True)
class Held:
    """Bytes in memory, in pieces that stay as they are until `release`, which is called once, by any thread."""

    pieces: Sequence[memoryview]
    _budget: Budget
    _blocks: Sequence[memoryview]

    def __len__(self) -> int:
        return sum(map(len, self.pieces))

    def __bytes__(self) -> bytes:
        return b"".join(self.pieces)

    def release(self) -> None:
        """Nobody looks at the pieces any more."""
        self._budget._recycle(self._blocks)  # noqa: SLF001 - two halves of one thing


@dataclass(slots=True, eq=False)
class Budget:
    """How many bytes the spools of a task may hold in memory together. For one thread."""

    limit: int = DEFAULT_LIMIT
    used: int = 0
    spilled: int = 0
    _spools: dict[int, Spool] = field(default_factory=dict)
    _unused: deque[memoryview] = field(default_factory=deque)
    _file: IO[bytes] | None = None
    _free: list[int] = field(default_factory=list)
    _blocks: int = 0

    def spool(self) -> Spool:
        """An empty one."""
        return Spool(self)

    def close(self) -> None:
        """Nothing of any spool is wanted any more."""
        self._unused.clear()
        if self._file is not None:
            self._file.close()
            self._file = None

    def _block(self) -> memoryview:
        """A whole block of memory."""
        try:
            return self._unused.pop()
        except IndexError:
            return memoryview(bytearray(BLOCK_SIZE))

    def _recycle(self, blocks: Sequence[memoryview]) -> None:
        self._unused.extend(each for each in blocks if len(each) == BLOCK_SIZE)

    def _grew(self, spool: Spool, size: int) -> None:
        """A spool took bytes; the largest go to disk when there are too many."""
        if spool.in_memory == size:
            self._spools[id(spool)] = spool
        self.used += size
        if self.used > self.limit:
            for each in sorted(self._spools.values(), key=lambda one: -one.in_memory):
                if self.used <= self.limit * _KEPT:
                    return
                each.spill()

    def _shrank(self, spool: Spool, size: int) -> None:
        self._spools.pop(id(spool), None)
        self.used -= size

    def _put(self, data: memoryview) -> int:
        """Write a block; its number."""
        if self._file is None:
            self._file = tempfile.TemporaryFile(  # noqa: SIM115 - open as long as the task
                prefix="penstock-", buffering=0, dir=local_folder()
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

    def _get(self, number: int, room: memoryview) -> None:
        """Read a block back, as much as there is room for; it is free then."""
        assert self._file is not None  # noqa: S101 - a block was written
        found = os.preadv(self._file.fileno(), [room], number * BLOCK_SIZE)
        if found != len(room):
            msg = f"the spill file lost {len(room) - found} bytes"
            raise OSError(msg)
        self._free.append(number)


@dataclass(slots=True, eq=False)
class Spool:
    """Bytes that are appended, and taken out together, in their order."""

    budget: Budget
    in_memory: int = 0
    _memory: list[memoryview] = field(default_factory=list)
    _filled: int = 0
    _on_disk: list[tuple[int, int]] = field(default_factory=list)
    _disk_size: int = 0

    def __len__(self) -> int:
        return self._disk_size + self.in_memory

    def write(self, data: bytes | memoryview) -> None:
        """Append bytes; they are copied. A view has to be one of bytes."""
        rest = memoryview(data)
        size = len(rest)
        if not size:
            return
        while rest:
            if not self._memory or self._filled == len(self._memory[-1]):
                self._memory.append(self._room(len(rest)))
                self._filled = 0
            block = self._memory[-1]
            end = min(self._filled + len(rest), len(block))
            block[self._filled : end] = rest[: end - self._filled]
            rest, self._filled = rest[end - self._filled :], end
        self.in_memory += size
        self.budget._grew(self, size)  # noqa: SLF001 - two halves of one thing

    def take(self) -> Held:
        """All bytes, in memory."""
        blocks, sizes = [], []
        for number, size in self._off_disk():
            blocks.append(self.budget._block())  # noqa: SLF001 - as above
            sizes.append(size)
            self.budget._get(number, blocks[-1][:size])  # noqa: SLF001 - as above
        pieces = [block[:size] for block, size in zip(blocks, sizes, strict=True)]
        pieces += self._filled_parts()
        return Held(pieces, self.budget, [*blocks, *self._emptied()])

    def pieces(self) -> Iterator[memoryview]:
        """All bytes in pieces; each is gone when the next one is asked for."""
        room = None
        for number, size in self._off_disk():
            room = self.budget._block() if room is None else room  # noqa: SLF001 - as above
            self.budget._get(number, room[:size])  # noqa: SLF001 - as above
            yield room[:size]
        parts = self._filled_parts()
        blocks = self._emptied()
        yield from parts
        self.budget._recycle(blocks if room is None else [*blocks, room])  # noqa: SLF001 - as above

    def reader(self) -> IO[bytes]:
        """All bytes as a file that is read once."""
        return io.BufferedReader(_Pieces(self.pieces()), BLOCK_SIZE)

    def clear(self) -> None:
        """Nothing of it is wanted."""
        for number, _ in self._off_disk():
            self.budget._free.append(number)  # noqa: SLF001 - as above
        self.budget._recycle(self._emptied())  # noqa: SLF001 - as above

    def spill(self) -> None:
        """Move what is in memory to disk."""
        parts = self._filled_parts()
        while len(parts) > 1 and len(parts[0]) + len(parts[1]) <= BLOCK_SIZE:
            parts[:2] = [memoryview(b"".join(parts[:2]))]
        self._on_disk += [(self.budget._put(part), len(part)) for part in parts]  # noqa: SLF001 - as above
        self._disk_size += self.in_memory
        self.budget._recycle(self._emptied())  # noqa: SLF001 - as above

    def _room(self, wanted: int) -> memoryview:
        """The next block: each is twice as large as the one before, so that what is small takes little."""
        size = max(2 * len(self._memory[-1]) if self._memory else _LEAST, wanted)
        if size > BLOCK_SIZE // 2 or self._on_disk:
            return self.budget._block()  # noqa: SLF001 - as above
        return memoryview(bytearray(1 << (size - 1).bit_length()))

    def _filled_parts(self) -> list[memoryview]:
        return [*self._memory[:-1], *(block[: self._filled] for block in self._memory[-1:])]

    def _emptied(self) -> list[memoryview]:
        blocks, self._memory, self._filled = self._memory, [], 0
        size, self.in_memory = self.in_memory, 0
        self.budget._shrank(self, size)  # noqa: SLF001 - as above
        return blocks

    def _off_disk(self) -> list[tuple[int, int]]:
        found, self._on_disk, self._disk_size = self._on_disk, [], 0
        return found


class _Pieces(io.RawIOBase):
    """Pieces of bytes as a file."""

    def __init__(self, pieces: Iterator[memoryview]) -> None:
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
            self._rest = piece
        size = min(len(buffer), len(self._rest))
        buffer[:size], self._rest = self._rest[:size], self._rest[size:]
        return size
