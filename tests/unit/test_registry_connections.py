"""Connections to the Schema Registry."""

import gc

from penstock.registry import _client


def test_connections_are_closed_with_the_client_that_the_cache_drops(registry):
    schema_id = registry.add("t-value", '"int"', "AVRO")
    client = _client((("url", registry.url), ("timeout", 10)))
    session = client._rest_client.session
    assert client.get_schema(schema_id).schema_str == '"int"'
    assert not session.is_closed
    del client
    _client.cache_clear()
    gc.collect()
    assert session.is_closed
