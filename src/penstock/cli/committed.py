"""Which connector's objects a command means: `NAME` in the embedded stack, or a connector's file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from penstock.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping


def source_options(name: str, connector: Path | None, directory: Path) -> Mapping[str, str]:
    """The options of the format `penstock` for a connector.

    `name`: its name, or its file; in the embedded stack it may have run in the foreground as well. `connector`: its
    file, where `name` is to count in place of the file's own.

    Raises:
        UsageError: nothing says where it is.
    """
    from penstock.dev import stack
    from penstock.sources.object_options import of_store
    from penstock.worker import saved

    file = connector or (Path(name) if Path(name).is_file() else None)
    if file is not None:
        return {"connector": str(file.absolute()), **({} if connector is None else {"name": name})}
    info = stack.load_info(directory)
    if info is None:
        msg = f"nothing says where `{name}` is: give its file with --connector, or run `penstock start`"
        raise UsageError(msg)
    loaded = {each.name: each.config for each in saved.read_all(directory / "worker" / "connectors")}
    return {**of_store(info.as_json()), **of_store(loaded.get(name, {})), "name": name}
