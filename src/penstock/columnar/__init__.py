"""Avro data to Arrow columns: a schema compiled to a table, a compiled walk, arrays out of what it found."""
