"""Kafka topics to S3 objects, exactly once, on Spark."""
