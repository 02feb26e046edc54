"""Where `penstock ls` and `penstock sql` look for what a connector committed."""

import pytest

from penstock.cli.committed import source_options
from penstock.dev import stack
from penstock.dev.settings import StackInfo
from penstock.errors import UsageError
from penstock.sources.object_options import parse

STACK = StackInfo("k:1", "http://stack", "eu-central-1", "stacks", "stack-key", "stack-secret", "http://r")


@pytest.fixture
def running(monkeypatch):
    monkeypatch.setattr(stack, "load_info", lambda _: STACK)


@pytest.fixture
def write(tmp_path):
    def make(**given):
        file = tmp_path / "sink.properties"
        file.write_text("".join(f"{name.replace('_', '.')}={text}\n" for name, text in given.items()))
        return file

    return make


def places(options):
    store = parse(options).data
    return store.bucket, store.region, store.url, store.access_key_id


@pytest.mark.usefixtures("running")
def test_a_file_that_the_stack_ran_is_completed_by_the_stack(write, tmp_path):
    file = write(name="c", s3_bucket_name="own")
    options = source_options(str(file), None, tmp_path)
    assert places(options) == ("own", "eu-central-1", "http://stack", "stack-key")
    assert parse(options).url == "s3://own/_penstock/c/"


@pytest.mark.usefixtures("running")
def test_the_stacks_keys_are_for_no_other_store(write, tmp_path):
    file = write(name="c", s3_bucket_name="own", s3_region="us-east-1", store_url="http://other")
    assert places(source_options(str(file), None, tmp_path)) == ("own", "us-east-1", "http://other", "")


@pytest.mark.usefixtures("running")
def test_a_file_named_by_connector_says_all_by_itself(write, tmp_path):
    file = write(name="c", s3_bucket_name="own", s3_region="us-east-1")
    options = source_options("another", file, tmp_path)
    assert places(options) == ("own", "us-east-1", None, "")
    assert parse(options).url == "s3://own/_penstock/another/"


def test_a_name_without_a_stack_is_told_what_to_give(tmp_path):
    with pytest.raises(UsageError, match="nothing says where `c` is: give its file"):
        source_options("c", None, tmp_path)
