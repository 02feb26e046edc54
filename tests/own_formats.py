"""A format as a user would write it."""
# ruff: noqa: ARG002 - what the protocol hands over


class Framed:
    """Each value behind its length, `format.option.width` bytes."""

    accepts = ("bytes", "text")
    extension = ".framed"
    separator = b""

    def __init__(self, properties):
        self.width = int(properties["format.option.width"])

    def refuses(self, schema):
        return None

    def encoder(self, schema, key):
        return FramedEncoder(self.width)


class FramedEncoder:
    def __init__(self, width):
        self.width = width

    def write(self, chunk, rows):
        numbers = range(len(chunk.offsets) - 1)[rows] if isinstance(rows, slice) else rows
        for row in numbers:
            value = chunk.data[chunk.offsets[row] : chunk.offsets[row + 1]].tobytes()
            yield len(value).to_bytes(self.width, "big") + value

    def finish(self):
        return ()

    def abandon(self):
        pass
