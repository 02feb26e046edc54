import pickle
from pathlib import Path

import pytest

from penstock.config.load import is_worker, kafka_properties, load_sink
from penstock.config.properties import of_mapping, parse, parse_json, read
from penstock.config.variables import resolve
from penstock.errors import ConfigError
from penstock.loading import load

BARE = "must be the bucket's bare name (letters, digits, `.`, `-`, `_`), without s3:// and path"
ADDRESS = "Address of the Schema Registry, or several with commas."
ROOT = Path(__file__).parents[2]
EMBEDDED = {
    "bootstrap.servers": "127.0.0.1:1",
    "store.url": "http://127.0.0.1:2",
    "s3.region": "eu-west-1",
    "s3.bucket.name": "theirs",
    "aws.access.key.id": "key",
    "aws.secret.access.key": "hidden-secret",
    "schema.registry.url": "http://127.0.0.1:3",
}
GOOD = {
    "name": "s3-sink",
    "topics": "a, b",
    "flush.size": "3",
    "format.class": "avro",
    "s3.bucket.name": "b",
    "value.converter": "avro",
    "value.converter.schema.registry.url": "http://r",
}


def config(**changes):
    given = {**GOOD, **{name.replace("_", "."): text for name, text in changes.items()}}
    return load_sink(of_mapping({n: t for n, t in given.items() if t is not None}, "x"), of_mapping({}, "w"))


def problems(text, worker=None):
    with pytest.raises(ConfigError) as caught:
        load_sink(parse(text, "s3.properties"), worker, None)
    return list(caught.value.problems)


def test_the_seeds_quickstart_file_means_what_it_says():
    loaded = load_sink(read(ROOT / "etc" / "quickstart-s3.properties"), None, EMBEDDED)
    assert (loaded.name, loaded.topics, loaded.flush_size, loaded.tasks_max) == ("s3-sink", ("s3_topic",), 3, 1)
    assert (loaded.format_class, loaded.partitioning.partitioner, loaded.value_converter) == ("avro", "default", "avro")
    assert (loaded.bucket, loaded.region) == ("confluent-kafka-connect-s3-testing", "us-west-2")
    assert (loaded.store_url, loaded.access_key_id) == ("http://127.0.0.1:2", "key")
    assert loaded.secret_access_key.reveal() == "hidden-secret"
    assert loaded.converter_options == {"schema.registry.url": "http://127.0.0.1:3"}


def test_every_mistake_of_a_file_is_named_at_once_in_its_order():
    text = """name=s3-sink
topics=a
topics.regex=b
flush.size=ten
s3.bucket.name=s3://b
format.clas=avro
storage.class=io.confluent.connect.s3.storage.S3Storage
partitioner.class=HourlyPartitioner
s3.compression.type=lzo
value.converter=avro
"""
    found = problems(text, parse("bootstrap.servers=x:1", "w"))
    assert found == [
        "s3.properties:3: one of topics and topics.regex must be set, not both",
        "s3.properties:4: flush.size must be an integer, got `ten`",
        f"s3.properties:5: s3.bucket.name {BARE}, got `s3://b`",
        "s3.properties:6: unknown property `format.clas`; did you mean `format.class`?",
        "s3.properties:9: s3.compression.type must be none, gzip or zstd, got `lzo`",
        "s3.properties: format.class must be set: The file format, or one of your own (docs/formats.md).",
        f"s3.properties: value.converter.schema.registry.url must be set: {ADDRESS}",
        "s3.properties: partitioner.class `hourly` needs locale; set it, for example locale=en-US",
        "s3.properties: partitioner.class `hourly` needs timezone; set it, for example timezone=UTC",
    ]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"topics": None}, "neither is"),
        ({"flush_size": "3.5"}, "flush.size must be an integer, got `3.5`"),
        ({"aws_access_key_id": "x"}, "go together"),
        ({"transforms": "a"}, "not supported yet: transforms"),
        ({"value_converter_schemas_enable": "maybe", "value_converter": "json"}, "schemas.enable must be"),
        ({"schema_compatibility": "FULL_TRANSITIVE"}, "schema.compatibility must be NONE, BACKWARD"),
        ({"s3_part_size": "1"}, "s3.part.size must be an integer >= 5242880"),
        ({"name": "a/b"}, "name must be"),
        ({"on_data_loss": "maybe"}, "on.data.loss must be fail or skip"),
        ({"topics_regex": "(", "topics": None}, "topics.regex must be"),
    ],
)
def test_a_wrong_value_is_told_with_what_is_right(changes, words):
    with pytest.raises(ConfigError, match="x") as caught:
        config(**changes)
    assert words in str(caught.value)


def test_connect_s_framework_properties_are_accepted():
    config(
        offset_flush_interval_ms="1000",
        schema_generator_class="io.confluent.connect.storage.hive.schema.DefaultSchemaGenerator",
        hive_integration="false",
        errors_log_enable="true",
        transforms="",
    )


def test_a_worker_file_gives_converters_and_client_settings():
    worker = parse(
        "bootstrap.servers=k:9092\nsecurity.protocol=SSL\nconsumer.isolation.level=read_uncommitted\n"
        "value.converter=org.apache.kafka.connect.storage.StringConverter\nplugin.path=/x\n",
        "w",
    )
    without = {name: text for name, text in GOOD.items() if not name.startswith("value.converter")}
    connector = of_mapping({**without, "consumer.override.fetch.max.bytes": "7"}, "x")
    assert is_worker(worker)
    assert not is_worker(connector)
    assert load_sink(connector, worker).value_converter == "string"
    assert {name: value.text for name, value in kafka_properties(connector, worker).items()} == {
        "bootstrap.servers": "k:9092",
        "security.protocol": "SSL",
        "isolation.level": "read_uncommitted",
        "fetch.max.bytes": "7",
    }


def test_without_worker_and_stack_the_ways_out_are_named(tmp_path):
    with pytest.raises(ConfigError, match="penstock start"):
        load(GOOD, None, tmp_path)


CLASS = "org.apache.kafka.connect.converters.ByteArrayConverter"


def test_a_recorded_configuration_shapes_files_as_it_was():
    old = config(flush_size="5", topics_dir="before")
    new = config(flush_size="7", avro_codec="snappy", tasks_max="4")
    again = new.with_shaping(old.shaping())
    assert (again.flush_size, again.topics_dir, again.avro_codec, again.tasks_max) == (5, "before", "null", 4)
    assert again.shaping() == old.shaping()
    assert new.with_shaping(new.shaping()) == new


@pytest.mark.parametrize("text", [None, "org.apache.kafka.connect.converters.ByteArrayConverter", "string"])
def test_a_recorded_key_converter_is_the_one_that_was_meant(text):
    named = {} if text is None else {"key.converter": text}
    made = load_sink(of_mapping({**GOOD, "store.kafka.keys": "true", **named}, "x"), None)
    assert made.with_shaping(made.shaping()) == made


def test_a_configuration_travels_and_shows_no_secret():
    secret = config(aws_access_key_id="a", aws_secret_access_key="hidden-secret")
    assert "hidden-secret" not in repr(secret) + str(secret.shaping())
    assert pickle.loads(pickle.dumps(secret)) == secret
    assert pickle.loads(pickle.dumps(config(topics=None, topics_regex="a.*"))).topics_regex.fullmatch("abc")


def test_variables_are_replaced_and_missing_ones_named(tmp_path):
    file = tmp_path / "secrets"
    file.write_text("password=s3cret\n")
    text = f"a=${{env:HERE}}/${{file:{file}:password}}\n"
    assert resolve(parse(text, "f"), {"HERE": "x"})["a"].text == "x/s3cret"
    with pytest.raises(ConfigError) as caught:
        resolve(parse("a=${env:NO}\nb=${file:/none:k}\n", "f"), {})
    assert [each.split(":")[1] for each in caught.value.problems] == ["1", "2"]


def test_java_s_properties_syntax():
    text = "! comment\na\\ b : c\\\n   d\ne=\\u0041\\t\nf\nf=2\n"
    found = parse(text, "f")
    assert {name: value.text for name, value in found.items()} == {"a b": "cd", "e": "A\t", "f": "2"}
    assert found["e"].where == "f:4"
    assert found.warnings == ("f:6: f is given again; its value at f:5 is not used",)


def test_connect_s_json_is_the_same():
    found = parse_json('{"name": "n", "config": {"flush.size": 3, "x": true}}', "f")
    assert {name: value.text for name, value in found.items()} == {"flush.size": "3", "x": "true", "name": "n"}
    with pytest.raises(ConfigError, match="f:1: not valid JSON"):
        parse_json("{", "f")
