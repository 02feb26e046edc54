"""The servers of the embedded stack, one file each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.dev.services import kafka, moto, registry, s3proxy, worker

if TYPE_CHECKING:
    from collections.abc import Mapping

    from penstock.dev.services.service import Service

S3_SERVERS: Mapping[str, Service] = {"s3proxy": s3proxy.SERVICE, "moto": moto.SERVICE}


def services(s3: str) -> tuple[Service, ...]:
    """What a stack with that S3 server consists of, in the order in which it starts.

    A further service is one file and one entry; `after_others` keeps it back until the ones before it answer.
    """
    return (kafka.SERVICE, S3_SERVERS[s3], registry.SERVICE, worker.SERVICE)
