"""A Zarr store whose chunks cannot take more memory than their arrays say: a small file may unpack to gigabytes."""

from __future__ import annotations

from typing import Any

from zarr.storage import WrapperStore

MAGIC = b"\x28\xb5\x2f\xfd"
BYTES_OF_DICTIONARY = (0, 1, 2, 4)
BYTES_OF_SIZE = (0, 2, 4, 8)


class BoundedStore(WrapperStore[Any]):
    """Hands out chunks of Zstandard frames only if they unpack to what a chunk of their array holds."""

    def __init__(self, store: Any, chunk_bytes: dict[str, int]) -> None:
        super().__init__(store)
        self.chunk_bytes = chunk_bytes  # by array; others are not looked at

    def _with_store(self, store: Any) -> BoundedStore:
        return BoundedStore(store, self.chunk_bytes)

    async def get(self, key: str, prototype: Any, byte_range: Any = None) -> Any:
        """See Zarr's `Store.get`."""
        content = await super().get(key, prototype, byte_range)
        name, _, place = key.partition("/")
        if content is not None and name in self.chunk_bytes and place.startswith("c/"):
            size, expected = unpacked_size(content[:18].to_bytes()), self.chunk_bytes[name]
            if size != expected:
                raise ValueError(f"chunk {key} must unpack to {expected:,} bytes, got {size:,}")
        return content


def unpacked_size(start: bytes) -> int:
    """Bytes to which a Zstandard frame says that it unpacks, by its first 18 bytes (RFC 8878, 3.1.1.1)."""
    if start[:4] != MAGIC or len(start) < 5:
        raise ValueError("a chunk is not a Zstandard frame")
    kind, is_single = start[4] >> 6, bool(start[4] & 0x20)
    first = 5 + (not is_single) + BYTES_OF_DICTIONARY[start[4] & 3]
    length = BYTES_OF_SIZE[kind] or int(is_single)
    if not length or len(start) < first + length:
        raise ValueError("a chunk does not say to how many bytes it unpacks")
    return int.from_bytes(start[first : first + length], "little") + (256 if length == 2 else 0)
