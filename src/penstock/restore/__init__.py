"""Committed objects back into Kafka, exactly once. docs/restore.md says what comes back and what cannot."""
