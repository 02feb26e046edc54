"""From texts to values: each given property is read by its declaration, and every mistake becomes one sentence."""

from __future__ import annotations

import difflib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from penstock.config.declare import text_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from penstock.config.declare import Property
    from penstock.config.properties import Value

_CLOSE = 0.7


@dataclass(slots=True)
class Findings:
    """What is wrong and what is odd: a sentence each, with the name of the given property or None."""

    problems: list[tuple[str | None, str]] = field(default_factory=list)
    warnings: list[tuple[str | None, str]] = field(default_factory=list)

    def problem(self, name: str | None, sentence: str) -> None:
        """Note a mistake."""
        self.problems.append((name, sentence))

    def sentences(self, order: Iterable[str]) -> tuple[str, ...]:
        """The problems in the order of the names given, those of no given name at the end."""
        return _sorted(self.problems, order)

    def oddities(self, order: Iterable[str]) -> tuple[str, ...]:
        """The warnings in that order."""
        return _sorted(self.warnings, order)


def read_value(declared: Property, given: Mapping[str, Value], file: str, findings: Findings) -> Any:  # noqa: ANN401 - each property has its own type
    """The value of a property; its default where it is not given, None where it is wrong or missing.

    `file`: where a missing one is missed.
    """
    found = declared.find(given)
    if found is None:
        if declared.required:
            findings.problem(None, f"{file}: {declared.name} must be set: {declared.doc}")
        return declared.default_value
    name, value = found
    try:
        parsed = declared.kind.parse(value.text)
    except ValueError as error:
        # A phrase may quote a part of the text, which is not to be shown where a variable gave it.
        phrase = error if value.written is None else f"must be {declared.kind.rule or f'a {declared.kind.label}'}"
        findings.problem(name, f"{value.where}: {name} {phrase}, got `{declared.shown(value)}`")
        return None
    if parsed in declared.refused:
        findings.problem(name, f"{value.where}: {name}=`{declared.shown(value)}` {declared.refused[parsed]}")
    elif declared.supported is not None and parsed not in declared.supported:
        words = declared.supported_words
        advice = f"so far it can be {words}" if words else "take it out"
        findings.problem(name, f"{value.where}: not supported yet: {name}=`{declared.shown(value)}`; {advice}")
    else:
        return parsed
    return None


def check_dependence(
    declared: Property, parsed: Mapping[str, Any], given: Mapping[str, Value], findings: Findings
) -> None:
    """Warn where a property is set that has no effect beside the others."""
    found = declared.find(given)
    if found is None or declared.only_with is None or parsed[declared.name] == declared.default_value:
        return
    other, values = declared.only_with
    if other == "partitioner.class" and (":" in (parsed[other] or "") or parsed["path.template"]):
        return  # what a class of the user's own, or a template, looks at is not known here
    if parsed[other] is not None and parsed[other] not in values:
        needed = " or ".join(f"`{text_of(value)}`" for value in values)
        name, value = found
        findings.warnings.append((name, f"{value.where}: {name} has no effect without {other}={needed}"))


def unknown(name: str, value: Value, known: Iterable[str]) -> str:
    """The sentence for a property that nobody knows, with the closest name that somebody does."""
    near = difflib.get_close_matches(name, sorted(known), n=1, cutoff=_CLOSE)
    advice = f"did you mean `{near[0]}`?" if near else "docs/configuration.md lists all"
    return f"{value.where}: unknown property `{name}`; {advice}"


def _sorted(items: list[tuple[str | None, str]], order: Iterable[str]) -> tuple[str, ...]:
    position = {name: number for number, name in enumerate(order)}
    last = len(position)
    ordered = sorted(items, key=lambda item: position.get(item[0] or "", last))
    return tuple(dict.fromkeys(sentence for _, sentence in ordered))
