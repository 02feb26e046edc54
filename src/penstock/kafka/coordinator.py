"""Whether a consumer group may be used, asked without librdkafka's admin client.

That one aborts the process where the connection to a coordinator breaks while it sends (librdkafka #5397), and its
consumer waits for a coordinator that it may not ask about until its time is up.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from aiokafka.protocol.coordination import FindCoordinatorRequest

from penstock.errors import KafkaUnavailable
from penstock.kafka.brokers import BrokerLost, Brokers

if TYPE_CHECKING:
    from collections.abc import Mapping

_GROUP = 0


def error_code(connection: Mapping[str, Any], group: str) -> int:
    """Kafka's error code for the search for the group's coordinator; 0 where there is one.

    `connection`: keyword arguments of an AIOKafkaClient.

    Raises:
        KafkaUnavailable: no broker answers, or they refuse this client.
    """
    return asyncio.run(_ask(connection, group))


async def _ask(connection: Mapping[str, Any], group: str) -> int:
    brokers = Brokers(connection)
    reason = "no broker is known"
    try:
        await brokers.topology(())
        for node in brokers.nodes:
            try:
                answer = await brokers.send(node, FindCoordinatorRequest(group, _GROUP))
            except BrokerLost as lost:
                reason = str(lost)
            else:
                return int(answer.error_code)
    finally:
        await brokers.close()
    msg = f"no broker says who coordinates consumer group `{group}`: {reason}"
    raise KafkaUnavailable(msg)
