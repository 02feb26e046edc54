"""Spark's plans of a transformation: which are refused, and how each row keeps its record's number on the way.

A row must be made of one record, and stand where that record stood: only then can a commit say which offsets are done.
What is allowed is listed; everything else is refused by name (docs/decisions/0013-transformations.md).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

Java = Any
"""An object of the JVM."""
SOURCE = "penstock_records"
"""The name that the reading function has in plans."""


class RefusedPlan(ValueError):  # noqa: N818 - what Spark is asked to do
    """A plan under which order or exactly-once would be lost; words that follow "the query "."""


_ORDER = "and records keep the order that they have in Kafka"
_ONE = "and of each record one row at most may be made"
_WHOLE = "and a record is written by itself"
_REFUSED = {
    "Aggregate": f"aggregates (GROUP BY, DISTINCT or an aggregate function), {_WHOLE}",
    "Distinct": f"has a DISTINCT, {_WHOLE}",
    "Deduplicate": f"removes duplicates, {_WHOLE}",
    "Window": f"has a window function, {_WHOLE}",
    "WithWindowDefinition": f"has a window, {_WHOLE}",
    "Sort": f"sorts (ORDER BY), {_ORDER}",
    "Repartition": f"shuffles (repartition), {_ORDER}",
    "RepartitionByExpression": f"shuffles (repartition), {_ORDER}",
    "RebalancePartitions": f"shuffles (rebalance), {_ORDER}",
    "GlobalLimit": "has a LIMIT, which counts records of one run; leave records out with WHERE",
    "LocalLimit": "has a LIMIT, which counts records of one run; leave records out with WHERE",
    "Tail": "takes the last rows of a run; leave records out with WHERE",
    "Offset": "has an OFFSET, which counts records of one run; leave records out with WHERE",
    "Generate": f"makes rows of an array or a map (explode), {_ONE}",
    "Expand": f"makes several rows of one, {_ONE}",
    "Unpivot": f"makes several rows of one (UNPIVOT), {_ONE}",
    "Pivot": f"aggregates (PIVOT), {_WHOLE}",
    "Union": f"puts rows of several queries together (UNION), {_ORDER}",
    "Intersect": f"compares rows with each other (INTERSECT), {_WHOLE}",
    "Except": f"compares rows with each other (EXCEPT), {_WHOLE}",
    "Sample": "takes a sample, and the same records must always give the same rows",
    "LateralJoin": "has a LATERAL join; join with a table instead",
}
_PLAIN = ("Project", "Filter", "SubqueryAlias", "View", "ResolvedHint")
_CLOCKS = {
    "CurrentTimestamp",
    "CurrentDate",
    "CurrentTime",
    "CurrentTimeZone",
    "Now",
    "LocalTimestamp",
    "CurrentBatchTimestamp",
}
_KEEPS = {"Inner": (0, 1), "Cross": (0, 1), "LeftOuter": (0,), "RightOuter": (1,), "LeftSemi": (0,), "LeftAnti": (0,)}
_STEPS = (
    "WholeStageCodegen",
    "InputAdapter",
    "Project",
    "Filter",
    "ColumnarToRow",
    "BatchEvalPython",
    "ArrowEvalPython",
)


def items(sequence: Java) -> list[Java]:
    """The items of a Scala sequence."""
    return [sequence.apply(at) for at in range(sequence.size())]


def carried(jvm: Java, plan: Java, number: Java) -> Java:
    """The analyzed plan with the attribute `number` in its output, kept on the whole way from the records.

    Raises:
        RefusedPlan: some step does not say which record a row of it is made of, or asks a clock or chance.
    """
    inlined = _inlined(jvm, plan)
    sources = sum(_is_source(each) for each in _every(inlined))
    if sources != 1:
        why = "does not read `records`" if sources == 0 else f"reads `records` more than once, {_WHOLE}"
        raise RefusedPlan(why)
    for each in reversed(list(_every(inlined))):  # queries within expressions before these
        for expression in items(each.expressions()):
            _check_expression(expression)
    return _carry(jvm, inlined, number)


def _inlined(jvm: Java, plan: Java) -> Java:
    """The plan with each WITH query where it is used. The rule takes more arguments in newer versions of Spark."""
    if not any(_name(each) == "WithCTE" for each in _every(plan)):
        return plan
    rule = jvm.java.lang.Class.forName("org.apache.spark.sql.catalyst.optimizer.InlineCTE").getConstructors()[0]
    always = [True, *[False] * (rule.getParameterCount() - 1)]
    return jvm.org.apache.spark.sql.catalyst.optimizer.InlineCTE(*always).apply(plan)


def _carry(jvm: Java, plan: Java, number: Java) -> Java:
    if any(each.exprId().equals(number.exprId()) for each in items(plan.output())):
        return plan
    name, children = _name(plan), items(plan.children())
    if name == "Join":
        at = _streamed(children)
        if at not in _KEEPS.get(_join_type(plan), ()):
            msg = f"has a {_join_type(plan)} join that can give rows without a record; join so that `records` is kept"
            raise RefusedPlan(msg)
    elif name in _PLAIN:
        at = 0
    else:
        msg = _REFUSED.get(name, f"has a step `{name}` that does not say which record a row of it is made of")
        raise RefusedPlan(msg)
    children[at] = _carry(jvm, children[at], number)
    if name == "Project":
        wanted = jvm.PythonUtils.toSeq([*items(plan.projectList()), number])
        return jvm.org.apache.spark.sql.catalyst.plans.logical.Project(wanted, children[0])
    return plan.withNewChildren(jvm.PythonUtils.toSeq(children))


def _streamed(children: list[Java]) -> int:
    """Which of two sides the records are on."""
    return next(at for at, child in enumerate(children) if any(_is_source(each) for each in _every(child)))


def _is_source(plan: Java) -> bool:
    return _name(plan) == "MapInArrow" and SOURCE in str(plan.toString()).partition("\n")[0]


def _join_type(plan: Java) -> str:
    return str(plan.joinType().toString())


def _check_expression(expression: Java) -> None:
    """Raise `RefusedPlan` where the same record could give another value another time."""
    name = str(expression.getClass().getSimpleName())
    if name in _CLOCKS:
        asked = expression.prettyName()
        msg = f"asks a clock (`{asked}`), and the same records must always give the same rows; use the column `_now`"
        raise RefusedPlan(msg)
    for child in items(expression.children()):
        _check_expression(child)
    if not expression.deterministic():
        called = expression.name() if name.startswith("PythonUDF") else expression.prettyName()
        msg = f"is not deterministic (`{called}`), and the same records must always give the same rows"
        raise RefusedPlan(msg)


def check_physical(plan: Java) -> None:
    """Raise `RefusedPlan` where Spark would move records between tasks, or hold them back."""
    while True:
        name = _name(plan)
        if _is_source(plan):
            return
        children = items(plan.children())
        if name in ("BroadcastHashJoin", "BroadcastNestedLoopJoin"):
            at = _streamed(children)
            if _name(children[at]) == "BroadcastExchange":
                msg = f"is run by Spark with a copy of all records in each task ({name}), {_ORDER}"
                raise RefusedPlan(msg)
            plan = children[at]
        elif "Join" in name or "CartesianProduct" in name:
            msg = f"is run by Spark with a join that shuffles ({name}), {_ORDER}; join by equal columns"
            raise RefusedPlan(msg)
        elif name.split(" ")[0] in _STEPS:
            plan = children[0]
        else:
            msg = f"is run by Spark with a step `{name}` that moves or gathers records, {_ORDER}"
            raise RefusedPlan(msg)


def _name(plan: Java) -> str:
    return str(plan.nodeName())


def _every(plan: Java) -> Iterator[Java]:
    """A plan's nodes, those of queries within its expressions as well."""
    yield plan
    for child in items(plan.children()):
        yield from _every(child)
    for query in items(plan.subqueries()):
        yield from _every(query)
