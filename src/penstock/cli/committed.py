"""Which connector's objects a command means: `NAME` in the embedded stack, or a connector's file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from penstock.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping

_OF_STACK = ("s3.region", "store.url", "aws.access.key.id", "aws.secret.access.key")


def source_options(name: str, connector: Path | None, directory: Path) -> Mapping[str, str]:
    """The options of the format `penstock` for a connector.

    `name`: its name, or its file; "" where `connector`, its file, says the name.

    Raises:
        UsageError: nothing says where it is.
    """
    from penstock.dev import stack

    file = connector or (Path(name) if name and Path(name).is_file() else None)
    if file is not None:
        own_name = {} if connector is None or not name else {"name": name}
        return {"connector": str(file.absolute()), **own_name}
    info = stack.load_info(directory)
    if info is None:
        msg = f"nothing says where `{name}` is: give its file with --connector, or run `penstock start`"
        raise UsageError(msg)
    given = info.as_json()
    reach = {each: given[each] for each in _OF_STACK}
    return {"path": f"s3://{given['s3.bucket.name']}/_penstock/{name}", **reach}
