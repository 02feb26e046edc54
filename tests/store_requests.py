"""What a connector's file makes a store send, caught before it leaves."""

import types

from botocore.awsrequest import AWSResponse

from penstock import stores
from penstock.config.load import load_sink
from penstock.config.properties import parse
from penstock.store.base import Create
from penstock.store.s3 import store

HEAD = (
    "name=s\nconnector.class=S3SinkConnector\ntopics=t\nflush.size=3\ns3.bucket.name=b\n"
    "format.class=bytes\nvalue.converter=bytes\n"
)
WORKER = parse("bootstrap.servers=k:9092\n", "w")
PROVIDER = "s3.credentials.provider"


def load(text, head=HEAD):
    return load_sink(parse(head + text, "f"), WORKER)


def sent(options, *requests):
    """The requests that a store makes, as botocore would send them."""
    opened = store(options)
    seen = []

    def answer(request, **_):
        seen.append(request)
        body = b"<R><UploadId>u</UploadId><ETag>e</ETag></R>"
        raw = types.SimpleNamespace(stream=lambda *_, **__: iter([body]), read=lambda *_: b"")
        return AWSResponse(request.url, 200, {"ETag": '"e"', "Content-Length": "0"}, raw)

    opened.client.meta.events.register("before-send.s3", answer)
    for request in requests:
        request(opened)
    return seen


def text_of(request, name):
    value = request.headers[name]
    return value.decode() if isinstance(value, bytes) else value


def options_of(text, bucket="b"):
    return stores.of_sink(load(f"aws.access.key.id=k\naws.secret.access.key=s\n{text}"), bucket)


def put(opened):
    opened.put("k", b"x", Create())
