"""Where a topic-partition that the state log does not know yet begins: pure.

Order (issue 3, "first position"): what Kafka Connect committed for this connector, so that an existing one is taken
over where it stands; else `consumer.auto.offset.reset`. Offsets that we mirrored ourselves are never a position unless
the user says so: if they are all that is left, the state log was deleted.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from penstock.errors import StateError

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from penstock.model import TopicPartition

Reset = Literal["earliest", "latest", "none"]
OnMissingState = Literal["fail", "resume", "reset"]


@dataclass(frozen=True, slots=True)
class GroupPosition:
    """An offset found in the connector's consumer group; `ours` if it carries our mark."""

    offset: int
    ours: bool


@dataclass(frozen=True, slots=True)
class Policy:
    """What the configuration says about beginnings, and the names for the messages."""

    connector: str
    group: str
    state: str
    reset: Reset
    on_missing_state: OnMissingState


def first_positions(
    tps: Collection[TopicPartition],
    group: Mapping[TopicPartition, GroupPosition],
    starts: Mapping[TopicPartition, int],
    ends: Mapping[TopicPartition, int],
    policy: Policy,
) -> dict[TopicPartition, int]:
    """The first position of each of `tps`; `starts` and `ends` are Kafka's log start and end.

    Raises `StateError` when only mirrored offsets are left and `on.missing.state=fail`, or when there is nothing to go
    by and `auto.offset.reset` is `none`.
    """
    mirrored = sorted(tp for tp in tps if tp in group and group[tp].ours)
    if mirrored and policy.on_missing_state == "fail":
        raise StateError(_missing_state(mirrored, group, policy))
    positions = {}
    for tp in sorted(tps):
        known = group.get(tp)
        if known is not None and (not known.ours or policy.on_missing_state == "resume"):
            positions[tp] = known.offset
        else:
            positions[tp] = _reset(tp, starts, ends, policy)
    return positions


def _reset(
    tp: TopicPartition,
    starts: Mapping[TopicPartition, int],
    ends: Mapping[TopicPartition, int],
    policy: Policy,
) -> int:
    if policy.reset == "none":
        msg = (
            f"{tp}: consumer group `{policy.group}` has no offset for it and consumer.auto.offset.reset is `none`; "
            "set it to `earliest` or `latest`"
        )
        raise StateError(msg)
    return (starts if policy.reset == "earliest" else ends)[tp]


def _missing_state(
    mirrored: list[TopicPartition], group: Mapping[TopicPartition, GroupPosition], policy: Policy
) -> str:
    tp = mirrored[0]
    return (
        f"connector `{policy.connector}`: there is no state under {policy.state}, but consumer group `{policy.group}` "
        f"says that this connector already wrote (e.g. {tp} up to offset {group[tp].offset}): the state was deleted or "
        "state.dir changed; bring it back, or set on.missing.state to `resume` (go on from the group's offsets) or "
        "`reset` (begin anew as consumer.auto.offset.reset says, which writes records a second time)"
    )
