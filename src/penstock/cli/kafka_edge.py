"""Where a command finds Kafka, the registry and S3: a worker file, or the embedded stack; and how Kafka's failures read."""
