"""The state log: what counts, in the sink's bucket. docs/decisions/0003-the-state-log.md says why it is as it is."""

from penstock.statelog.entries import Entry, Head, Takeover
from penstock.statelog.log import StateLog

__all__ = ["Entry", "Head", "StateLog", "Takeover"]
