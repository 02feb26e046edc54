"""Connector, worker and embedded stack together: what each gives, and every sentence about what cannot be."""

import dataclasses
from pathlib import Path

import pytest

from penstock.config.accepted import ACCEPTED
from penstock.config.declare import declarations
from penstock.config.load import is_worker, kafka_properties, load_sink
from penstock.config.properties import Properties, parse, parse_json, read
from penstock.config.sink import SinkConfig
from penstock.errors import ConfigError
from penstock.kafka.settings import KafkaSettings

ETC = Path(__file__).parents[2] / "etc"
STACK = {
    "bootstrap.servers": "127.0.0.1:1",
    "store.url": "http://127.0.0.1:2",
    "s3.region": "eu-west-1",
    "s3.bucket.name": "theirs",
    "aws.access.key.id": "stack-key",
    "aws.secret.access.key": "stack-secret",
    "schema.registry.url": "http://127.0.0.1:3",
}
HEAD = "name=s\nconnector.class=S3SinkConnector\ntopics=t\nflush.size=3\ns3.bucket.name=b\n"
BYTES = HEAD + "format.class=bytes\nvalue.converter=bytes\n"
AVRO = HEAD + "format.class=avro\nvalue.converter=avro\n"
WORKER = parse("bootstrap.servers=k:9092\n", "w")
REGISTRY = "value.converter.schema.registry.url"
CONVERTER_RULE = "must be avro, json, string, bytes, protobuf or json_schema, or the Java class name of one of them"
NO_JAVA = (
    "reads Java system properties, which do not exist here; "
    "set aws.access.key.id and aws.secret.access.key, or use `environment`"
)
# Seed 001, "Write raw message values into S3", put together as it says.
RAW_SEED = """name=s3-raw-sink
connector.class=io.confluent.connect.s3.S3SinkConnector
tasks.max=1
topics=s3_topic
flush.size=3
s3.bucket.name=confluent-kafka-connect-s3-testing
s3.region=us-west-2
s3.part.size=5242880
s3.compression.type=gzip
value.converter=org.apache.kafka.connect.converters.ByteArrayConverter
format.class=io.confluent.connect.s3.format.bytearray.ByteArrayFormat
storage.class=io.confluent.connect.s3.storage.S3Storage
schema.compatibility=NONE
partitioner.class=io.confluent.connect.storage.partitioner.DefaultPartitioner
"""


def load(text, worker=WORKER, embedded=None):
    return load_sink(parse(text, "f"), worker, embedded)


def problems(text, worker=WORKER, embedded=None):
    with pytest.raises(ConfigError) as caught:
        load(text, worker, embedded)
    return list(caught.value.problems)


def lines(text):
    return len(text.splitlines())


def test_the_seeds_raw_bytes_example_runs():
    loaded = load(RAW_SEED)
    assert (loaded.format_class, loaded.value_converter, loaded.bytearray_separator) == ("bytes", "bytes", "\n")
    assert (loaded.compression_type, loaded.part_size) == ("gzip", 5_242_880)


def test_the_quickstart_runs_with_the_worker_file_beside_it():
    worker = read(ETC / "connect-avro-standalone.properties")
    connector = read(ETC / "quickstart-s3.properties")
    assert is_worker(worker)
    assert not is_worker(connector)
    loaded = load_sink(connector, worker)
    assert loaded.converter_options == {"schema.registry.url": "http://127.0.0.1:8081"}
    assert (loaded.store_url, loaded.access_key_id) == (None, "")
    settings = {name: value.text for name, value in kafka_properties(connector, worker).items()}
    assert KafkaSettings.parse(settings).bootstrap_servers == "127.0.0.1:9092"


@pytest.mark.parametrize("name", sorted(ACCEPTED))
def test_what_means_nothing_here_may_stand_in_both_files(name):
    given = name.replace("*", "anything")
    worker = parse(f"bootstrap.servers=k:9092\n{given}=x\n", "w")
    assert load(f"{BYTES}{given}=x\n", worker).warnings == ()
    assert "x" not in {value.text for value in kafka_properties(parse(BYTES, "f"), worker).values()}


def test_defaults_of_all_properties_are_valid_values():
    for each in declarations(SinkConfig).values():
        if each.default is not None:
            assert each.supported is None or each.default_value in each.supported, each.name


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("flush.sizes=3", "unknown property `flush.sizes`; did you mean `flush.size`?"),
        ("s3.bucket=b", "unknown property `s3.bucket`; did you mean `s3.bucket.name`?"),
        ("rotate.schedule.ms=1", "unknown property `rotate.schedule.ms`; did you mean `rotate.schedule.interval.ms`?"),
        ("zzz=1", "unknown property `zzz`; docs/configuration.md lists all"),
        (
            "value.converter.schema.registery.url=x",
            f"unknown property `value.converter.schema.registery.url`; did you mean `{REGISTRY}`?",
        ),
        (
            "bootstrap.servers=x:1",
            "bootstrap.servers belongs in the worker file; here write consumer.override.bootstrap.servers",
        ),
        (
            "consumer.max.poll.records=1",
            "consumer.max.poll.records belongs in the worker file; here write consumer.override.max.poll.records",
        ),
        ("transforms=a", "not supported yet: transforms=`a`; records are written unchanged, take it out"),
        ("predicates=p", "not supported yet: predicates=`p`; records are written unchanged, take it out"),
        ("topics.regex=a.*", "one of topics and topics.regex must be set, not both"),
        (
            "aws.access.key.id=x",
            "aws.access.key.id and aws.secret.access.key go together; set aws.secret.access.key as well",
        ),
        (
            "aws.secret.access.key=planted",
            "aws.access.key.id and aws.secret.access.key go together; set aws.access.key.id as well",
        ),
        (
            "s3.credentials.provider.class=static",
            "s3.credentials.provider.class is `static`; set aws.access.key.id and aws.secret.access.key",
        ),
        (
            "s3.credentials.provider.class=com.amazonaws.auth.SystemPropertiesCredentialsProvider",
            f"s3.credentials.provider.class=`com.amazonaws.auth.SystemPropertiesCredentialsProvider` {NO_JAVA}",
        ),
        ("topics.dir=_penstock", "state.dir and topics.dir are the same; change one of them"),
        (
            "timezone=Europe/Berlim",
            (
                "timezone must be a time zone such as America/Los_Angeles, UTC or +02:00; did you mean "
                "`Europe/Berlin`?, got `Europe/Berlim`"
            ),
        ),
        ("tasks.max=", "tasks.max must be an integer >= 1, got ``"),
    ],
)
def test_a_mistake_is_told_with_its_line(line, sentence):
    assert problems(f"{BYTES}{line}\n") == [f"f:{lines(BYTES) + 1}: {sentence}"]


@pytest.mark.parametrize("name", ["name", "flush.size", "s3.bucket.name", "format.class", "value.converter"])
def test_what_must_be_set_is_missed_by_name(name):
    text = "".join(line for line in BYTES.splitlines(keepends=True) if not line.startswith(f"{name}="))
    (sentence,) = problems(text)
    assert sentence.startswith(f"f: {name} must be set: ")


def test_mistakes_of_the_worker_file_come_after_the_connector_s():
    worker = parse("bootstrap.servers=k:1\nvalue.convertor=avro\nvalue.converter=none\n", "w")
    assert problems(f"{HEAD}format.class=bytes\nzzz=1\n", worker) == [
        "f:7: unknown property `zzz`; docs/configuration.md lists all",
        "w:2: unknown property `value.convertor`; did you mean `value.converter`?",
        f"w:3: value.converter {CONVERTER_RULE}, got `none`",
    ]


def test_json_has_schemas_unless_they_are_turned_off():
    json = f"{HEAD}format.class=json\nvalue.converter=json\n"
    assert load(json).converter_options == {}
    assert load(f"{json}value.converter.schemas.enable=false\n").converter_options == {"schemas.enable": "false"}
    assert problems(f"{json}value.converter.schemas.enable=maybe\n")[0].startswith(
        "f:8: value.converter.schemas.enable"
    )


SOURCE = "value.converter.basic.auth.credentials.source"
INFO = "value.converter.basic.auth.user.info"
TOKEN = "value.converter.bearer.auth.token"


@pytest.mark.parametrize(
    ("given", "options"),
    [
        (f"{REGISTRY}=r:8081, http://s/\n", {"schema.registry.url": "https://r:8081,http://s"}),
        (
            f"{REGISTRY}=https://me:pa%40ss@r\n",
            {
                "schema.registry.url": "https://r",
                "basic.auth.credentials.source": "USER_INFO",
                "basic.auth.user.info": "me:pa@ss",
            },
        ),
        (
            f"{REGISTRY}=https://r\n{SOURCE}=USER_INFO\n{INFO}=me:pw\n",
            {
                "schema.registry.url": "https://r",
                "basic.auth.credentials.source": "USER_INFO",
                "basic.auth.user.info": "me:pw",
            },
        ),
        (
            f"{REGISTRY}=https://r\nvalue.converter.schema.registry.ssl.ca.location=/ca.pem\n",
            {"schema.registry.url": "https://r", "schema.registry.ssl.ca.location": "/ca.pem"},
        ),
    ],
)
def test_the_registry_s_address_and_login_are_read(given, options):
    assert load(AVRO + given).converter_options == options


@pytest.mark.parametrize(
    ("given", "line", "sentence"),
    [
        (f"{REGISTRY}=ftp://r\n", 8, f"{REGISTRY} must be a URL like https://s3.example.com:9000, got `ftp://r`"),
        (f"{REGISTRY}=ftp://planted@r\n", 8, f"{REGISTRY} must be a URL like https://s3.example.com:9000"),
        (f"{REGISTRY}=http://planted@r\n", 8, f"{REGISTRY} must hold USER:PASSWORD, got `****`"),
        (f"{REGISTRY}=http://r\n{SOURCE}=USER_INFO\n", 9, f"{SOURCE} is USER_INFO; give {INFO}"),
        (f"{REGISTRY}=http://r\n{INFO}=a:planted\n", 9, f"{INFO} counts only with {SOURCE}=USER_INFO; set that"),
        (
            f"{REGISTRY}=http://r\n{SOURCE}=USER_INFO\n{INFO}=planted\n",
            10,
            f"{INFO} must hold USER:PASSWORD, got `****`",
        ),
        (
            f"{REGISTRY}=http://r\n{SOURCE}=SASL_INHERIT\n",
            9,
            f"not supported yet: {SOURCE}=`SASL_INHERIT`; so far it can be `URL` or `USER_INFO`",
        ),
        (
            f"{REGISTRY}=http://r\nvalue.converter.bearer.auth.token=planted\n",
            9,
            f"{TOKEN} counts only with value.converter.bearer.auth.credentials.source=STATIC_TOKEN; set that",
        ),
    ],
)
def test_a_registry_that_cannot_be_used_is_told_and_no_login_shown(given, line, sentence):
    found = problems(AVRO + given)
    assert found[0].startswith(f"f:{line}: {sentence}")
    assert "planted" not in "".join(found)


def test_options_of_another_converter_are_passed_over_as_connect_does():
    assert load(f"{BYTES}value.converter.schemas.enable=true\n").value_converter == "bytes"


def test_a_converter_of_one_s_own_gets_no_options_from_the_worker():
    worker = parse(
        "bootstrap.servers=k:1\nvalue.converter=json\nvalue.converter.schemas.enable=false\nspark.x=w\nspark.y=w\n", "w"
    )
    own = load(f"{BYTES}spark.x=c\n", worker)
    assert own.converter_options == {}
    assert own.spark == {"spark.x": "c", "spark.y": "w"}
    theirs = load(f"{HEAD}format.class=json\n", worker)
    assert (theirs.value_converter, theirs.converter_options) == ("json", {"schemas.enable": "false"})


def test_the_stack_stands_in_only_where_there_is_no_worker_file():
    text = f"{HEAD}format.class=avro\n"
    stack = load(text, None, STACK)
    assert (stack.bucket, stack.region, stack.store_url) == ("b", "eu-west-1", "http://127.0.0.1:2")
    assert (stack.access_key_id, stack.secret_access_key.reveal()) == ("stack-key", "stack-secret")
    beside = load(BYTES, WORKER, STACK)
    assert (beside.region, beside.store_url, beside.access_key_id) == ("us-west-2", None, "")
    assert load(text.replace("s3.bucket.name=b\n", ""), None, STACK).bucket == "theirs"


def test_the_stack_s_keys_are_not_sent_to_another_store():
    other = load(f"{BYTES}store.url=http://other\n", None, STACK)
    assert (other.store_url, other.access_key_id) == ("http://other", "")
    (half,) = problems(f"{BYTES}aws.access.key.id=k\n", None, STACK)
    assert "go together" in half
    own = load(f"{BYTES}aws.access.key.id=k\naws.secret.access.key=s\n", None, STACK)
    assert (own.store_url, own.access_key_id) == ("http://127.0.0.1:2", "k")


def test_client_settings_are_merged_with_the_connector_s_last():
    worker = parse("bootstrap.servers=a:1\nsasl.mechanism=PLAIN\nconsumer.fetch.max.bytes=1\nproducer.x=1\n", "w")
    connector = parse(f"{BYTES}consumer.override.fetch.max.bytes=2\n", "f")
    merged = kafka_properties(connector, worker, STACK)
    assert {name: (value.text, value.where) for name, value in merged.items()} == {
        "bootstrap.servers": ("a:1", "w:1"),
        "sasl.mechanism": ("PLAIN", "w:2"),
        "fetch.max.bytes": ("2", "f:8"),
    }
    alone = parse(f"{BYTES}consumer.override.bootstrap.servers=c:1\n", "f")
    assert kafka_properties(alone, None)["bootstrap.servers"].text == "c:1"


def test_what_has_no_effect_beside_the_others_is_warned_about():
    text = f"{BYTES}path.format=YYYY\navro.codec=snappy\nlocale=\nflush.size=4\n"
    assert load(text).warnings == (
        "f:11: flush.size is given again; its value at f:4 is not used",
        "f:8: path.format has no effect without partitioner.class=`time` or `fieldandtime`",
        "f:9: avro.codec has no effect without format.class=`avro`",
    )


def test_a_recorded_configuration_that_this_version_cannot_do_is_named():
    current = load(BYTES)
    with pytest.raises(ConfigError) as caught:
        current.with_shaping({"flush.size": "many", "partitioner.class": "weekly", "flush.lines": "1"})
    end = "which this Penstock cannot do; run the version that recorded it"
    assert sorted(caught.value.problems) == [
        f"the state log records flush.lines=`1`, {end}",
        f"the state log records flush.size=`many`, {end}",
        f"the state log records partitioner.class=`weekly`, {end}",
    ]


def test_what_shapes_files_is_recorded_as_given_and_no_more():
    text = f"{BYTES}topics.dir=x\ns3.part.size=5242880\naws.access.key.id=k\naws.secret.access.key=planted\n"
    assert load(text).shaping() == {
        "flush.size": "3",
        "format.class": "bytes",
        "value.converter": "bytes",
        "topics.dir": "x",
    }


def test_connect_s_json_gives_the_same_configuration():
    json = parse_json(
        '{"name": "s", "config": {"connector.class": "S3SinkConnector", "topics": "t", "flush.size": 3, '
        '"s3.bucket.name": "b", "format.class": "bytes", "value.converter": "bytes"}}',
        "f",
    )
    assert load_sink(json, WORKER) == load(BYTES)


def test_a_whole_file_of_secrets_shows_none_of_them():
    secret = {each.name for each in declarations(SinkConfig).values() if each.secret}
    given = "".join(f"{name}=planted\n" for name in sorted(secret)) + f"{INFO}=planted\naws.access.key.id=k\n"
    connector = parse(AVRO + given, "f")
    with pytest.raises(ConfigError) as caught:
        load_sink(connector, WORKER)
    assert "planted" not in str(caught.value) + repr(connector)
    loaded = load(f"{AVRO}{REGISTRY}=http://u:planted@r\naws.access.key.id=k\naws.secret.access.key=planted\n")
    assert "planted" not in repr(loaded) + str(loaded.shaping()) + str(loaded.warnings)


def test_a_configuration_is_frozen():
    with pytest.raises(dataclasses.FrozenInstanceError):
        load(BYTES).flush_size = 4
    assert isinstance(parse(BYTES, "f"), Properties)


@pytest.mark.parametrize(
    "path",
    [
        "last.txt",
        "{{topic}}/{{shard}}",
        "{{partition:5}}",
        "{{topic:x}}{{partition}}",
        "x{{partition",
        "{{topic}}{{partition}}",
    ],
)
def test_each_partition_has_a_name_of_its_own_for_its_newest_index(path):
    block = f"{HEAD}format.class=block_gzip\nvalue.converter=string\nlast.chunk.index.path="
    (sentence,) = problems(f"{block}{path}\n")
    assert sentence.startswith(
        "f:8: last.chunk.index.path must hold {{partition}}, apart from each other, and no variable"
    )
    assert sentence.endswith(f"got `{path}`")
    assert load(f"{block}last.{{{{topic}}}}-{{{{partition:padding=5}}}}.txt\n").block_gzip.last_index.startswith(
        "last."
    )


def test_a_time_of_a_block_gzip_connector_is_called_by_its_own_name_and_line():
    given = (
        "name=s\nconnector.class=com.spredfast.kafka.connect.s3.S3SinkConnector\ntopics=t\ns3.bucket=b\n"
        "value.converter=string\n"
    )
    worker = parse("bootstrap.servers=k:9092\noffset.flush.interval.ms=often\n", "w")
    often = "w:2: offset.flush.interval.ms must be an integer >= -1, got `often`"
    soon = "f:6: flush.interval.ms must be an integer >= -1, got `soon`"
    late = "f:7: flush.grace.period.ms must be an integer >= -1, got `late`"
    assert problems(given, worker) == [often]
    assert sorted(problems(f"{given}flush.interval.ms=soon\n", worker)) == [soon, often]
    assert problems(f"{given}flush.interval.ms=5000\nflush.grace.period.ms=late\n", worker) == [late]
