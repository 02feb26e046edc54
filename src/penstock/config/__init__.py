"""Configuration: properties files, one declaration per property, and the frozen `SinkConfig` that they make."""
