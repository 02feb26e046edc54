"""How topic-partitions and offsets are written on the command line."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from penstock.errors import UsageError

if TYPE_CHECKING:
    from penstock.model import TopicPartition

_PLACE = re.compile(r"(?P<topic>[A-Za-z0-9._-]+)-(?P<partition>\d+)(?:[@=](?P<offset>\d+))?", re.ASCII)


def place(text: str) -> tuple[TopicPartition, int | None]:
    """`TOPIC-PARTITION`, or with `@` and an offset. Raises UsageError."""
    found = _read(text, "@")
    if found is None:
        msg = f"say TOPIC-PARTITION or TOPIC-PARTITION@OFFSET, for instance s3_topic-0@4; got `{text}`"
        raise UsageError(msg)
    return found


def at_offset(text: str, sign: str) -> tuple[TopicPartition, int]:
    """`TOPIC-PARTITION`, `sign` and an offset. Raises UsageError."""
    found = _read(text, sign)
    if found is None or found[1] is None:
        msg = f"say TOPIC-PARTITION{sign}OFFSET, for instance s3_topic-0{sign}4; got `{text}`"
        raise UsageError(msg)
    return found[0], found[1]


def _read(text: str, sign: str) -> tuple[TopicPartition, int | None] | None:
    from penstock.model import TopicPartition

    found = _PLACE.fullmatch(text)
    if found is None or (found["offset"] is not None and sign not in text):
        return None
    tp = TopicPartition(found["topic"], int(found["partition"]))
    return tp, None if found["offset"] is None else int(found["offset"])
