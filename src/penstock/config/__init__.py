"""Configuration: a connector's properties as one frozen value, every mistake named at once."""

from penstock.config.sink import SinkConfig

__all__ = ["SinkConfig"]
