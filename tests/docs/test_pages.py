"""Pages that are made from the code, or speak of it, say what the code says."""

import re
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from penstock.cli import reference as cli_reference
from penstock.cli.main import cli
from penstock.config import reference
from penstock.config.accepted import ACCEPTED, CONVERTER_OPTIONS, is_accepted
from penstock.config.declare import declarations
from penstock.config.options import OPTIONS
from penstock.config.sink import SinkConfig
from penstock.converters import KINDS
from penstock.converters.base import SCHEMALESS, Chunk
from penstock.crashpoints import POINTS
from penstock.formats import FORMATS, FormatOptions
from penstock.model import Records, Slices, TopicPartition
from penstock.partitioners.joda import LETTERS

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
# Every property of Confluent's sink, internal ones included, in the order of its own reference.
CONNECTOR = """
format.class flush.size rotate.interval.ms rotate.schedule.interval.ms schemas.cache.config schema.cache.size
enhanced.avro.schema.support connect.meta.data retry.backoff.ms shutdown.timeout.ms filename.offset.zero.pad.width
avro.codec allow.optional.map.keys parquet.codec schema.compatibility
s3.bucket.name s3.region s3.part.size s3.credentials.provider.class s3.credentials.provider.sts.role.arn
s3.credentials.provider.sts.role.session.name s3.credentials.provider.sts.role.external.id
s3.credentials.provider.sts.region aws.access.key.id aws.secret.access.key s3.ssea.name s3.sse.customer.key
s3.sse.kms.key.id s3.acl.canned s3.wan.mode s3.path.style.access.enabled s3.compression.type s3.compression.level
json.decimal.format s3.part.retries s3.retry.backoff.ms format.bytearray.extension format.bytearray.separator
s3.proxy.url s3.proxy.user s3.proxy.password s3.http.send.expect.continue behavior.on.null.values
report.null.values.to.dlq tombstone.encoded.partition max.write.duration.ms rotate.file.on.partition.change
s3.schema.partition.affix.type s3.object.tagging s3.object.tagging.key.value.pairs
s3.object.behavior.on.tagging.error s3.send.digest s3.elastic.buffer.enable s3.elastic.buffer.init.capacity
enable.conditional.writes max.files.scan.limit partitioner.max.open.files
store.kafka.keys keys.format.class store.kafka.headers headers.format.class
storage.class store.url topics.dir directory.delim file.delim
partitioner.class partition.field.name partition.duration.ms path.format locale timezone timestamp.extractor
timestamp.field hive.integration hive.metastore.uris hive.conf.dir hive.home hive.database
name connector.class tasks.max topics topics.regex key.converter value.converter header.converter errors.tolerance
errors.log.enable errors.log.include.messages errors.retry.timeout errors.retry.delay.max.ms
errors.deadletterqueue.topic.name errors.deadletterqueue.topic.replication.factor
errors.deadletterqueue.context.headers.enable offset.flush.interval.ms
"""


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
    accepted, _, options = page("compatibility.md").partition("## Accepted")[2].partition("Options behind")
    row = re.compile(r"^\| `([^`]+)` \| (.+) \|$", re.MULTILINE)
    assert dict(row.findall(accepted)) == ACCEPTED
    assert dict(row.findall(options)) == CONVERTER_OPTIONS


def test_a_property_is_declared_in_one_place_only():
    names = [each.name for each in declarations(SinkConfig).values()]
    assert len(names) == len(set(names))
    assert [name for name in names if is_accepted(name)] == []
    options = [each.name for group in OPTIONS.values() for each in group]
    assert len(options) == len(set(options))
    assert not set(options) & CONVERTER_OPTIONS.keys()


def test_every_property_of_the_connector_is_declared_or_accepted():
    declared = {name for each in declarations(SinkConfig).values() for name in (each.name, *each.aliases)}
    assert [name for name in CONNECTOR.split() if name not in declared and not is_accepted(name)] == []


def test_the_table_of_formats_is_that_of_the_registries():
    table = page("formats.md").partition("## Values")[0]
    head = re.search(r"^\| `value.converter` \| `format.class` (.*) \|$", table, re.MULTILINE)[1].split(" | ")
    assert set(head) == set(FORMATS)
    cells = r"\|([^|]*)" * len(head)
    rows = re.findall(rf"^\| `(\w+)`[^|]*{cells}\|$", table, re.MULTILINE)
    said = {row[0]: {name for name, cell in zip(head, row[1:], strict=True) if cell.strip() != "-"} for row in rows}
    made = {name: make(FormatOptions()).accepts for name, make in FORMATS.items()}
    assert said == {c: {f for f, accepts in made.items() if set(kinds) & set(accepts)} for c, kinds in KINDS.items()}


def test_the_format_of_the_formats_page_works_as_it_stands():
    (program,) = re.findall(r"```python\n(.*?)```", page("formats.md"), re.DOTALL)
    names: dict = {}
    exec(program, names)  # noqa: S102 - the page's own example
    encoder = names["Framed"]({"format.option.width": "2"}).encoder(SCHEMALESS, "key")
    chunk = Chunk(np.frombuffer(b"aaabbbb", dtype=np.uint8), np.array([0, 3, 7]))
    parts = [*encoder.write(chunk, slice(0, 2)), *encoder.write(chunk, np.array([1])), *encoder.finish()]
    assert b"".join(parts) == b"\x00\x03aaa\x00\x04bbbb\x00\x04bbbb"


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


def test_the_partitioner_of_the_layouts_page_works_as_it_stands():
    (program,) = re.findall(r"```python\n(.*?)```", page("layouts.md"), re.DOTALL)
    names: dict = {}
    exec(program, names)  # noqa: S102 - the page's own example
    values = Slices(np.frombuffer(b"aaabbbbbb", dtype=np.uint8), np.array([0, 3, 9]))
    records = Records(TopicPartition("t", 0), np.array([0, 1]), np.array([0, 0]), values, 2)
    labels = names["BySize"]({"partitioner.option.limit": "3"}).encode(SimpleNamespace(records=records))
    assert [labels.names[code] for code in labels.codes] == ["size=small", "size=large"]


def test_the_letters_of_the_time_page_are_those_of_the_code():
    table = page("time.md").partition("## Zones")[0]
    cells = re.findall(r"\| ((?:`\w`(?:, )?)+) \|", table)
    assert {letter for cell in cells for letter in re.findall(r"`(\w)`", cell)} == set(LETTERS)
