"""The steps by which data of a schema are walked over: nodes laid out in the order in which their values come."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from penstock.columnar import walk

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock.columnar.node import Node

Longs: TypeAlias = NDArray[np.int64]
Program: TypeAlias = tuple[Longs, Longs, Longs, NDArray[np.uint8], Longs]
"""(steps, nodes that are null together, branches of unions, bounds of decimals, of each node what counts its items)."""


def compiled_steps(root: Node, nodes: Sequence[Node], limits: Sequence[int]) -> Program:
    """What `walk.run` goes by. `limits`: the bounds of decimals, bytes that nodes point into."""
    layout = _Layout()
    layout.add(root)
    return (
        np.array(layout.steps, dtype=np.int64),
        np.array([*layout.nulls, 0], dtype=np.int64),
        np.array([*layout.branches, [0] * walk.BRANCH_COLUMNS], dtype=np.int64),
        np.array([*limits, *[0] * walk.LIMIT_BYTES], dtype=np.uint8),
        np.array([_items(node) for node in nodes], dtype=np.int64),
    )


@dataclass(slots=True)
class _Layout:
    steps: list[list[int]] = field(default_factory=list)
    nulls: list[int] = field(default_factory=list)
    branches: list[list[int]] = field(default_factory=list)

    def add(self, node: Node) -> None:
        """The steps of a node and of all below it."""
        if node.kind < walk.RECORD:
            step = self._step(node.kind, node)
            step[walk.NULL_BRANCH], step[walk.SIZE] = node.nullable, len(node.symbols) or node.size
            step[walk.TARGET] = node.limit
            return
        test = None if node.nullable < 0 else self._step(walk.NULLABLE, node)
        {walk.RECORD: self._record, walk.LIST: self._list, walk.UNION: self._union}[node.kind](node)
        if test is not None:
            test[walk.NULL_BRANCH], test[walk.TARGET] = node.nullable, len(self.steps)
            test[walk.NULLS], test[walk.NULLS_END] = self._nulls(_below(node))

    def _record(self, node: Node) -> None:
        if not node.silent:
            self._step(walk.RECORD, node)
        for child in node.children:
            assert child is not None  # noqa: S101 - only unions have branches without a node
            self.add(child)

    def _list(self, node: Node) -> None:
        head, start = self._step(walk.LIST, node), len(self.steps) - 1
        (item,) = node.children
        assert item is not None  # noqa: S101 - as above
        self.add(item)
        self._step(walk.NEXT, node)[walk.TARGET] = start
        head[walk.TARGET] = len(self.steps)

    def _union(self, node: Node) -> None:
        head, first = self._step(walk.UNION, node), len(self.branches)
        head[walk.SIZE], head[walk.TARGET] = len(node.children), first
        self.branches += [[0] * walk.BRANCH_COLUMNS for _ in node.children]
        ends = []
        for number, child in enumerate(node.children):
            others = [each for each in node.children if each is not None and each is not child]
            row = self.branches[first + number]
            row[walk.OTHERS], row[walk.OTHERS_END] = self._nulls([n for each in others for n in _together(each)])
            row[walk.STEP], row[walk.VALID] = len(self.steps), int(child is not None)
            if child is not None:
                self.add(child)
            ends.append(self._step(walk.GO, node))
        for end in ends:
            end[walk.TARGET] = len(self.steps)

    def _step(self, kind: int, node: Node) -> list[int]:
        step = [0] * walk.STEP_COLUMNS
        step[walk.KIND], step[walk.NODE], step[walk.NULL_BRANCH], step[walk.ITEM] = kind, node.number, -1, _items(node)
        self.steps.append(step)
        return step

    def _nulls(self, numbers: list[int]) -> tuple[int, int]:
        start = len(self.nulls)
        self.nulls += numbers
        return start, len(self.nulls)


def _together(node: Node) -> list[int]:
    """The nodes that get a null with this one: itself, and what is below it but not within a list."""
    own = [] if node.silent else [node.number]
    return own + _below(node)


def _below(node: Node) -> list[int]:
    children = [] if node.kind == walk.LIST else [each for each in node.children if each is not None]
    return [number for each in children for number in _together(each)]


def _items(node: Node) -> int:
    """Of a list, the node whose values are as many as its items; else -1."""
    if node.kind != walk.LIST:
        return -1
    (item,) = node.children
    while item is not None and item.silent:
        item = item.children[0]
    assert item is not None  # noqa: S101 - a list has items, a record fields
    return item.number
