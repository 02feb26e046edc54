"""s3proxy on files: a real S3 server that checks signatures and keeps its objects over restarts."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from penstock.dev.jars import jars
from penstock.dev.s3_client import answers
from penstock.dev.services.service import Launch, Service, Site
from penstock.java import find_java

if TYPE_CHECKING:
    from collections.abc import Callable

_PROPERTIES = """\
s3proxy.endpoint={url}
s3proxy.authorization=aws-v2-or-v4
s3proxy.identity={access_key_id}
s3proxy.credential={secret_access_key}
s3proxy.ignore-unknown-headers=true
jclouds.provider=filesystem-nio2
jclouds.filesystem.basedir={data}
"""

_LOGGING = """\
<configuration>
  <appender name="out" class="ch.qos.logback.core.ConsoleAppender">
    <encoder><pattern>%d %-5level %logger{20} %msg%n</pattern></encoder>
  </appender>
  <root level="WARN"><appender-ref ref="out"/></root>
</configuration>
"""


def _fetch(echo: Callable[[str], None]) -> object:
    return jars("s3proxy", echo)


def _prepare(site: Site) -> Launch:
    settings, data = site.settings, site.home / "data"
    data.mkdir(exist_ok=True)
    properties = site.home / "s3proxy.properties"
    text = _PROPERTIES.format(
        url=settings.url("s3"),
        access_key_id=settings.access_key_id,
        secret_access_key=settings.secret_access_key,
        data=str(data).replace("\\", "\\\\"),
    )
    with os.fdopen(os.open(properties, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
        file.write(text)
    (site.home / "logback.xml").write_text(_LOGGING, encoding="utf-8")
    java = (find_java() / "bin" / "java", "-Xms64m", "-Xmx512m", "-XX:+UseSerialGC")
    logging = f"-Dlogback.configurationFile={site.home / 'logback.xml'}"
    classes = f"{jars('s3proxy', lambda _: None)}/*"
    return Launch(command=(*java, logging, "-cp", classes, "org.gaul.s3proxy.Main", "--properties", properties))


SERVICE = Service(name="s3", ports=("s3",), fetch=_fetch, prepare=_prepare, answers=answers)
