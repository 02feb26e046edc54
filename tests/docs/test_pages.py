"""Pages that are made from the code, or speak of it, say what the code says."""

import re
from pathlib import Path

import pytest

from penstock.cli import reference as cli_reference
from penstock.cli.main import cli
from penstock.config import reference
from penstock.config.declare import declarations
from penstock.config.framework import NOT_YET, WITHOUT_EFFECT
from penstock.config.sink import SinkConfig
from penstock.converters import KINDS
from penstock.crashpoints import POINTS
from penstock.formats import FORMATS, FormatOptions

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"


def page(name):
    return (DOCS / name).read_text(encoding="utf-8")


def test_the_configuration_page_is_the_generated_one():
    assert page("configuration.md") == reference.render(), "python -m penstock.config.reference > docs/configuration.md"


def test_the_page_of_commands_is_the_generated_one():
    assert page("cli.md") == cli_reference.render(), "python -m penstock.cli.reference > docs/cli.md"


@pytest.mark.parametrize("name", sorted(cli.commands))
def test_every_command_has_help_that_ends_with_an_example(name):
    command = cli.commands[name]
    assert command.help
    assert f"penstock {name}" in command.epilog


def test_what_is_accepted_without_effect_is_in_the_compatibility_page():
    text = page("compatibility.md")
    for name, meaning in WITHOUT_EFFECT.items():
        assert f"| `{name}{'*' if name.endswith('.') else ''}` | {meaning} |" in text


def test_a_property_is_declared_in_one_place_only():
    declared = {each.name for each in declarations(SinkConfig).values()}
    assert not declared & NOT_YET.keys()
    assert not declared & WITHOUT_EFFECT.keys()
    assert not NOT_YET.keys() & WITHOUT_EFFECT.keys()


def test_the_table_of_formats_is_that_of_the_registries():
    rows = re.findall(r"^\| `(\w+)`[^|]*\|([^|]*)\|([^|]*)\|([^|]*)\|$", page("formats.md"), re.MULTILINE)
    names = ("avro", "json", "bytes")
    said = {row[0]: {name for name, cell in zip(names, row[1:], strict=True) if cell.strip() != "-"} for row in rows}
    made = {name: make(FormatOptions()).accepts for name, make in FORMATS.items()}
    assert said == {c: {f for f, accepts in made.items() if set(kinds) & set(accepts)} for c, kinds in KINDS.items()}


def test_links_between_pages_lead_somewhere():
    for file in [*ROOT.glob("*.md"), *DOCS.rglob("*.md")]:
        for target in re.findall(r"\]\((?!http)([^)#]+)[^)]*\)", file.read_text(encoding="utf-8")):
            assert (file.parent / target).exists(), f"{file.name}: {target}"


def test_the_readme_is_short_and_shows_the_quickstart_s_commands():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 150
    for command in (
        "make quickstart",
        "make test",
        "penstock start",
        "penstock produce s3_topic",
        "penstock cat s3://",
    ):
        assert command in text


def test_the_delivery_page_names_every_crash_point_and_tests_that_exist():
    text = page("delivery.md")
    assert [point for point in POINTS if f"`{point}`" not in text] == []
    sources = "".join(file.read_text(encoding="utf-8") for file in (ROOT / "tests").rglob("*.py"))
    for name in re.findall(r"`(test_\w+)`", text):
        assert f"def {name}(" in sources
    for file in re.findall(r"`(tests/[\w/.]+)`", text):
        assert (ROOT / file).exists()
