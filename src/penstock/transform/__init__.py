"""A query, or a function, between Kafka and the files (docs/spark.md, docs/decisions/0013-transformations.md)."""
