"""The audit behind `penstock verify`: what the state log says against itself, the bucket and Kafka.

docs/operating.md names every finding. What judges is pure (`findings`, `history`, `accounts`, `bucket`, `contents`);
`replay` reads Kafka again, and `auditing` puts them together.
"""
