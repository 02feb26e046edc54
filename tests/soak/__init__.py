"""A soak: producers, connectors, and all that goes wrong, for as long as wanted; then the count of every record."""
