"""`path.template`: a layout of object names of the user's own, which can never give two files one name.

Variables: `{{topic}}`, `{{partition}}`, `{{start_offset}}` (the last two with `:padding=true` for the width of
`filename.offset.zero.pad.width`, or `:padding=N`), `{{timestamp:FORMAT}}` in Joda's letters, `{{field:NAME}}`. A file
is known by topic, partition and start offset: a template must show these three, each readable from the name alone.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from penstock.keys import PADDING, VARIABLE
from penstock.partitioners.base import Labels
from penstock.partitioners.combined import CombinedPartitioner

if TYPE_CHECKING:
    from collections.abc import Callable

    from penstock.partitioners.base import Batch, Partitioner

_IDENTIFYING = ("topic", "partition", "start_offset")
_DIGIT = re.compile(r"[0-9]")


@dataclass(frozen=True, slots=True)
class Variable:
    """One variable of a template, with what stands behind its colon."""

    name: str
    argument: str = ""


@dataclass(frozen=True, slots=True)
class Template:
    """A checked template: literal texts and variables in turn."""

    pieces: tuple[str | Variable, ...]

    @classmethod
    def parse(cls, text: str, *, one_topic: bool) -> Template:
        """Read a template. `one_topic`: the connector writes one topic only, whose name need not be shown.

        Raises:
            ValueError: it cannot be read, or two files could get one name; a phrase that follows the property's name.
        """
        pieces: list[str | Variable] = []
        at = 0
        for match in VARIABLE.finditer(text):
            pieces += [text[at : match.start()], _variable(match[1], match[2] or "")]
            at = match.end()
        pieces.append(text[at:])
        literal = "".join(piece for piece in pieces if isinstance(piece, str))
        if "{{" in literal or "}}" in literal:
            msg = "has a variable that is not closed, or none of topic, partition, start_offset, timestamp, field"
            raise ValueError(msg)
        if not all(part not in ("", ".", "..") for part in VARIABLE.sub("x", text).split("/")):
            msg = "must not begin or end with `/`, nor hold empty segments, `.` or `..`"
            raise ValueError(msg)
        template = cls(tuple(piece for piece in pieces if piece != ""))
        template._check_identity(one_topic=one_topic)
        return template

    def _check_identity(self, *, one_topic: bool) -> None:
        names = [piece.name for piece in self.pieces if isinstance(piece, Variable)]
        for name in _IDENTIFYING:
            if name not in names and not (name == "topic" and one_topic):
                msg = f"must hold {{{{{name}}}}}: without it two files could get one name"
                raise ValueError(msg)
        for segment in self._segments():
            if any(isinstance(p, Variable) and p.name in ("timestamp", "field") for p in segment) and any(
                isinstance(p, Variable) and p.name in _IDENTIFYING for p in segment
            ):
                msg = (
                    "has a field or timestamp in the same path segment as topic, partition or start_offset, so that "
                    "two files could get one name; put a `/` between them"
                )
                raise ValueError(msg)
            _check_segment(segment)

    def _segments(self) -> list[list[str | Variable]]:
        segments: list[list[str | Variable]] = [[]]
        for piece in self.pieces:
            if isinstance(piece, Variable):
                segments[-1].append(piece)
                continue
            first, *others = piece.split("/")
            segments[-1].append(first)
            segments.extend([other] for other in others)
        return [[piece for piece in segment if piece != ""] for segment in segments]


def _variable(name: str, argument: str) -> Variable:
    if name not in (*_IDENTIFYING, "timestamp", "field"):
        msg = f"has an unknown variable `{name}`; there are topic, partition, start_offset, timestamp and field"
        raise ValueError(msg)
    if name in ("timestamp", "field") and not argument:
        msg = f"needs `{{{{{name}:{'yyyy/MM/dd' if name == 'timestamp' else 'NAME'}}}}}` instead of `{{{{{name}}}}}`"
        raise ValueError(msg)
    if name == "topic" and argument:
        msg = f"has `{{{{topic:{argument}}}}}`; topic takes nothing behind a colon"
        raise ValueError(msg)
    if name in _IDENTIFYING and argument and not PADDING.fullmatch(argument):
        msg = (
            f"has `{{{{{name}:{argument}}}}}`; after the colon of {name} only padding=true, padding=false or padding=N"
        )
        raise ValueError(msg)
    return Variable(name, argument)


def _check_segment(segment: list[str | Variable]) -> None:
    """Every identifying variable ends where a character stands that it cannot hold itself."""
    for left, right in pairwise(segment):
        for variable, other, edge in ((left, right, 0), (right, left, -1)):
            if not isinstance(variable, Variable) or variable.name not in _IDENTIFYING:
                continue
            # A topic may hold any character beside it: the numbers around it are read from the ends of the segment.
            if isinstance(other, Variable) or (variable.name != "topic" and _DIGIT.match(other[edge])):
                msg = (
                    f"does not keep {{{{{variable.name}}}}} apart from what stands beside it, so that two files could "
                    "get one name; put a `/` or `+` between them"
                )
                raise ValueError(msg)


@dataclass(frozen=True, slots=True)
class TemplatePartitioner:
    """The variable part of each record's object name: the template with times and fields filled in.

    A `/` in a value is written as %2F and a `{` as %7B. `parts`: a partitioner for each time or field, whose labels are
    its values.
    """

    template: Template
    parts: tuple[Partitioner, ...]

    def encode(self, batch: Batch) -> Labels:
        """One label for each combination of values; the rest of the template stands in it as it was written."""
        if not self.parts:
            return Labels((self._render([]),))
        labels = CombinedPartitioner(self.parts, "\x00").encode(batch)
        return Labels(tuple(self._render(name.split("\x00")) for name in labels.names), labels.codes, labels.refusals)

    def _render(self, values: list[str]) -> str:
        left, out = list(values), []
        for piece in self.template.pieces:
            if isinstance(piece, str):
                out.append(piece)
            elif piece.name == "field":
                out.append(left.pop(0).replace("/", "%2F").replace("{", "%7B"))
            elif piece.name == "timestamp":
                out.append(left.pop(0))
            else:
                out.append(_open(piece))
        return "".join(out)


def _open(variable: Variable) -> str:
    return f"{{{{{variable.name}{':' if variable.argument else ''}{variable.argument}}}}}"


def parts(
    template: Template, field: Callable[[str], Partitioner], timestamp: Callable[[str], Partitioner]
) -> tuple[Partitioner, ...]:
    """A partitioner for each time or field of a template, in order."""
    makers = {"field": field, "timestamp": timestamp}
    wanted = [piece for piece in template.pieces if isinstance(piece, Variable) and piece.name in makers]
    return tuple(makers[piece.name](piece.argument) for piece in wanted)
