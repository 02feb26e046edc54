"""What the worker's REST API shows and whom it answers."""

import pytest

from penstock.worker.api import make_app, masked
from penstock.worker.host import Host


@pytest.mark.parametrize(
    ("name", "text", "shown"),
    [
        ("aws.secret.access.key", "sesame", "****"),
        ("aws.access.key.id", "AKIA1", "AKIA1"),
        ("s3.proxy.url", "http://u:sesame@proxy:1", "****"),
        ("consumer.override.sasl.jaas.config", 'X required password="sesame";', "****"),
        ("consumer.override.ssl.keystore.key", "sesame", "****"),
        ("value.converter.basic.auth.user.info", "u:sesame", "****"),
        ("value.converter.schema.registry.url", "http://u:sesame@a:1,http://b:2", "http://****@a:1,http://b:2"),
        ("value.converter.schema.registry.url", "u:ses/ame@a:1", "****@a:1"),
        ("spark.ssl.keyPassword", "sesame", "****"),
        ("spark.hadoop.fs.s3a.access.key", "sesame", "****"),
        ("confluent.license", "sesame", "****"),
        ("aws.secret.access.key", "${env:SECRET}", "${env:SECRET}"),
        ("aws.secret.access.key", "${env:HALF}sesame", "****"),
        ("flush.size", "3", "3"),
    ],
)
def test_answers_mask_every_secret(name, text, shown):
    assert masked({name: text}) == {name: shown}


@pytest.fixture
def client(tmp_path):
    return make_app(Host(tmp_path, dict, lambda: None), "1").test_client()


@pytest.mark.parametrize(("host", "status"), [("127.0.0.1:80", 200), ("localhost:8083", 200), ("evil.example", 400)])
def test_a_name_that_a_web_page_made_lead_here_is_not_answered(client, host, status):
    assert client.get("/connectors", headers={"Host": host}).status_code == status


def test_a_form_that_a_web_page_sent_loads_nothing(client):
    answer = client.post("/connectors", data='{"name":"x","config":{}}', content_type="text/plain")
    assert answer.status_code == 415
    assert client.get("/connectors").json == []
