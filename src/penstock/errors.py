"""The exception tree.

PenstockError                 every foreseeable failure; its text is the sentence shown to the user
|- ConfigError                one or more mistakes in a configuration, all of them at once
|- UsageError                 the command line itself is wrong (exit code 2)
|- DataError                  a record that cannot be written; names topic, partition, offset
|- DataLossError              offsets that Kafka no longer has, or a state that does not fit the topic
|- StateError                 the state log is missing, broken or in contradiction
|- TakenOverError             another instance took over (exit code 3)
|- ForeignObjectError         an object that is not ours stands under our key
`- UnavailableError           an outside system does not answer or refuses; `transient` says whether waiting can help
   |- KafkaUnavailable
   |- StoreUnavailable
   |- RegistryUnavailable
   `- JobFailed
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock.model import TopicPartition


class PenstockError(Exception):
    """A foreseeable failure. `str(error)` is one clear sentence; `exit_code` is what the CLI ends with."""

    exit_code = 1


class ConfigError(PenstockError):
    """Mistakes in a configuration. `problems`: one sentence each, with file and line where known."""

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = tuple(problems)


class UsageError(PenstockError):
    """The command line is wrong."""

    exit_code = 2


class DataError(PenstockError):
    """A record that cannot be written."""

    def __init__(self, tp: TopicPartition, offset: int, reason: str) -> None:
        super().__init__(f"{tp.topic}-{tp.partition}@{offset}: {reason}")
        self.tp = tp
        self.offset = offset
        self.reason = reason


class DataLossError(PenstockError):
    """Kafka no longer has offsets that were not written yet, or the topic is not the one the state was made from."""


class StateError(PenstockError):
    """The state log is missing, unreadable or contradicts itself."""


class TakenOverError(PenstockError):
    """A newer instance of the same connector took over; this one must stop."""

    exit_code = 3


class ForeignObjectError(PenstockError):
    """An object that this connector did not write stands under one of its keys."""


class UnavailableError(PenstockError):
    """An outside system does not answer (`transient`) or refuses (not `transient`)."""

    def __init__(self, message: str, *, transient: bool = True) -> None:
        super().__init__(message)
        self.transient = transient


class KafkaUnavailable(UnavailableError):  # noqa: N818 - a state of the broker, not a mistake of ours
    """The broker does not answer, or refuses."""


class StoreUnavailable(UnavailableError):  # noqa: N818
    """The S3 server does not answer, or refuses."""


class RegistryUnavailable(UnavailableError):  # noqa: N818
    """The Schema Registry does not answer, or refuses."""


class JobFailed(UnavailableError):  # noqa: N818
    """Spark could not finish a job; the same plan is run again."""
