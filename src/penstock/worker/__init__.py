"""The background process that hosts connectors: what a Connect worker is to Kafka Connect, for the embedded stack."""
