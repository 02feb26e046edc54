"""What a receipt names is in the store, and is a prefix: whenever the uploads end, in any order, and whichever fail."""

import threading
from concurrent.futures import Future

from hypothesis import given, settings
from hypothesis import strategies as st
from memory_store import MemoryStore

from laid_out import TP, records
from penstock import parts
from penstock.loading import load
from penstock.model import PlannedRange
from penstock.rangewriter import Pipeline, RangeWriter
from penstock.store.upload import Owner, Uploads

PROPERTIES = {
    "name": "x",
    "connector.class": "io.confluent.connect.s3.S3SinkConnector",
    "topics": "t",
    "s3.bucket.name": "b",
    "s3.region": "us-east-1",
    "storage.class": "io.confluent.connect.s3.storage.S3Storage",
    "format.class": "bytes",
    "value.converter": "bytes",
}
FAULTS = st.lists(st.sampled_from(["none"] * 4 + ["lost", "unheard"]), max_size=12)
_HOLD_SECONDS = 0.002


class Slow:
    """Upload threads that begin late, and do what was submitted in an order of their own.

    They begin while the range waits for them; should it not wait, it has returned before the first of them begins.
    """

    def __init__(self, order):
        self.order, self.queue, self.returned = list(order), [], threading.Event()
        self.thread = threading.Thread(target=self._live)
        self.thread.start()

    def submit(self, work):
        done = Future()
        self.queue.append((done, work))
        return done

    def finish(self):
        self.returned.set()
        self.thread.join()

    def _live(self):
        while not self.returned.wait(_HOLD_SECONDS) or self.queue:
            while self.queue:
                done, work = self.queue.pop((self.order.pop() if self.order else 0) % len(self.queue))
                try:
                    done.set_result(work())
                except Exception as error:  # noqa: BLE001 - as a pool does it
                    done.set_exception(error)


@settings(max_examples=60)
@given(st.integers(1, 12), st.integers(1, 4), FAULTS, st.lists(st.integers(0, 11), max_size=12))
def test_a_receipt_names_what_is_in_the_store_up_to_the_first_upload_that_failed(count, flush_size, faults, order):
    values = [b"value%d" % n for n in range(count)]
    config, _ = load({**PROPERTIES, "flush.size": str(flush_size)}, {"bootstrap.servers": "127.0.0.1:9"})
    store, pool = MemoryStore(faulty="topics/"), Slow(order)
    store.put_faults.extend(faults)
    uploads = Uploads(store, Owner("x", 7), 5 << 20, pool=pool)
    pipeline = Pipeline(
        parts.sieve(config), parts.file_format(config), parts.layout(config), parts.cut_rules(config), uploads.open
    )
    writer = RangeWriter(PlannedRange(TP, 0, count, "flush"), pipeline, 1_700_000_000_000)
    writer.write(records(values, b"\n"))
    receipt = writer.finish()
    there = {key: body for key, (body, _) in store.objects.items()}  # as the driver finds it when it commits
    pool.finish()
    assert_prefix(receipt, there, values, flush_size)


def assert_prefix(receipt, there, values, flush_size):
    named = {each.key: each for each in receipt.commit.objects}
    at = 0
    for each in receipt.commit.objects:
        assert each.start == at < each.end
        assert there[each.key] == b"".join(value + b"\n" for value in values[at : each.end])
        at = each.end
    assert receipt.commit.position == at
    if receipt.fault is None:
        assert at == len(values)
        assert named.keys() == there.keys()
    else:  # the first one that failed; what lies behind it is not named, whether it is there or not
        assert receipt.fault.passing
        assert at < len(values)
        assert at % flush_size == 0
