"""The embedded stack for development: a real broker, a real S3 server, a Schema Registry."""
