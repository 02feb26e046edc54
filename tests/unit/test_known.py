import pytest

from penstock.cli.known import known
from penstock.errors import UsageError
from penstock.worker import saved

CONFIG = {
    "name": "s3-sink",
    "connector.class": "s3",
    "topics": "t",
    "s3.bucket.name": "bucket",
    "format.class": "json",
    "flush.size": "3",
    "storage.class": "s3",
    "value.converter": "string",
}


@pytest.fixture
def worker(tmp_path):
    file = tmp_path / "worker.properties"
    file.write_text("bootstrap.servers=k:9092\n")
    return file


def test_a_connector_is_known_by_its_file_or_by_the_name_that_it_was_loaded_under(tmp_path, worker):
    file = tmp_path / "sink.properties"
    file.write_text("".join(f"{name}={text}\n" for name, text in {**CONFIG, "name": "from-file"}.items()))
    saved.write(tmp_path / "worker" / "connectors", saved.SavedConnector("s3-sink", CONFIG))
    assert known(str(file), worker, tmp_path)[0].name == "from-file"
    config, kafka = known("s3-sink", worker, tmp_path)
    assert (config.name, kafka.bootstrap_servers) == ("s3-sink", "k:9092")


def test_a_connector_that_is_neither_is_told_with_those_there_are(tmp_path, worker):
    saved.write(tmp_path / "worker" / "connectors", saved.SavedConnector("s3-sink", CONFIG))
    with pytest.raises(UsageError, match=r"no file `s3-sin`, .* has: `s3-sink`"):
        known("s3-sin", worker, tmp_path)
