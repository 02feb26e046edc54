import pytest

from penstock.store import credentials
from penstock.store.options import StoreOptions

NAMES = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_ACCESS_KEY", "AWS_SECRET_KEY")


@pytest.fixture(autouse=True)
def _clean(monkeypatch, tmp_path):
    for name in (*NAMES, "AWS_PROFILE", "AWS_CONTAINER_CREDENTIALS_FULL_URI"):
        monkeypatch.delenv(name, raising=False)
    profile = tmp_path / "credentials"
    profile.write_text("[default]\naws_access_key_id = from-profile\naws_secret_access_key = s\n")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(profile))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")


def key_of(provider):
    found = credentials.session(StoreOptions("b", provider=provider)).get_credentials()
    return found and found.access_key


def test_each_step_looks_in_its_own_place_only(monkeypatch):
    assert key_of("default") == "from-profile"
    assert key_of("profile") == "from-profile"
    assert key_of("environment") is None
    assert key_of("container") is None
    assert key_of("instance_profile") is None
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "from-environment")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "s")
    assert key_of("default") == "from-environment"
    assert key_of("environment") == "from-environment"
    assert key_of("profile") == "from-profile"


def test_the_names_that_only_java_knew_come_second(monkeypatch):
    monkeypatch.setenv("AWS_ACCESS_KEY", "java")
    monkeypatch.setenv("AWS_SECRET_KEY", "s")
    assert key_of("environment") == "java"
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "usual")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "s")
    assert key_of("environment") == "usual"
