"""How topic-partitions and offsets are written on the command line."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from penstock.errors import UsageError

if TYPE_CHECKING:
    from penstock.model import TopicPartition

_PLACE = re.compile(r"(?P<topic>[A-Za-z0-9._-]+)-(?P<partition>\d+)(?:[@=](?P<offset>\d+))?", re.ASCII)


def place(text: str, sign: str = "@") -> tuple[TopicPartition, int | None]:
    """`TOPIC-PARTITION`, or with an offset behind `sign`. Raises UsageError."""
    from penstock.model import TopicPartition

    found = _PLACE.fullmatch(text)
    if found is None or (found["offset"] is not None and sign not in text):
        msg = f"say TOPIC-PARTITION or TOPIC-PARTITION{sign}OFFSET, for instance s3_topic-0{sign}4; got `{text}`"
        raise UsageError(msg)
    offset = None if found["offset"] is None else int(found["offset"])
    return TopicPartition(found["topic"], int(found["partition"])), offset


def at_offset(text: str, sign: str) -> tuple[TopicPartition, int]:
    """`TOPIC-PARTITION`, `sign` and an offset. Raises UsageError."""
    tp, offset = place(text, sign)
    if offset is None:
        msg = f"say TOPIC-PARTITION{sign}OFFSET, for instance s3_topic-0{sign}4; got `{text}`"
        raise UsageError(msg)
    return tp, offset
