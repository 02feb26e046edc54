"""docs/configuration.md, made from the declarations: `python -m penstock.config.reference > docs/configuration.md`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from penstock.config.declare import declarations
from penstock.config.framework import NOT_YET
from penstock.config.sink import SinkConfig
from penstock.kafka.properties import HARMLESS, PLAIN_PROPERTIES, REFUSED, SECURITY_PROPERTIES

if TYPE_CHECKING:
    from collections.abc import Iterable

    from penstock.config.declare import Property

_HEAD = """# Configuration

Generated from the declarations in `src/penstock/config/` by `python -m penstock.config.reference`; do not edit.

A connector's file is Java `.properties` text or Connect's JSON. `${env:NAME}` and `${file:PATH:KEY}` are replaced.
Names of formats, converters and partitioners are Confluent's Java class names, or the short names given here. A worker
file has `bootstrap.servers` and no `connector.class`; its converters are used where a connector names none.
"""


def render() -> str:
    """The whole page."""
    every = list(declarations(SinkConfig).values())
    theirs = [each for each in every if each.origin != "Penstock"]
    ours = [each for each in every if each.origin == "Penstock"]
    parts = [
        _HEAD,
        "## Properties of the connector\n",
        *_table(theirs),
        "## Penstock's own\n",
        *_table(ours),
        "## Converters, Spark\n",
        (
            "- `value.converter.*`: options of the value converter. Avro: `schema.registry.url`,\n"
            "  `basic.auth.credentials.source=USER_INFO` with `basic.auth.user.info`, \n"
            "  `schema.registry.ssl.*.location` (PEM). JSON: `schemas.enable=false`.\n"
            "- `spark.*`: passed to Spark as it is; `spark.master` for a cluster.\n"
        ),
        "## Kafka's client\n",
        "In the worker file as they are or behind `consumer.`, in the connector's file behind `consumer.override.`.\n",
        "Honoured: " + _names([*(each.name for each in PLAIN_PROPERTIES), *SECURITY_PROPERTIES]) + "\n",
        "Accepted without effect: " + _names(HARMLESS) + "\n",
        "Refused, because they could not be honoured: " + _names(REFUSED) + "\n",
        "## Not supported yet\n",
        "Accepted with the value that changes nothing, refused with any other: " + _names(NOT_YET) + "\n",
    ]
    return "\n".join(parts)


def _table(properties: Iterable[Property]) -> list[str]:
    lines = ["| property | type | default | valid | |", "|---|---|---|---|---|"]
    for each in properties:
        default = "required" if each.required else f"`{each.default}`" if each.default else ""
        valid = each.supported_words or each.kind.rule
        cells = (f"`{each.name}`", each.kind.label, default, valid, each.doc)
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return [*lines, ""]


def _names(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in sorted(set(names))) + "."


if __name__ == "__main__":
    sys.stdout.write(render())
