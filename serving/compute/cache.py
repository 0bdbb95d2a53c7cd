"""A cache bounded by entries and bytes; the least recently used entries are dropped first."""

import math
import sys
import threading
from collections import Counter, OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any

import numpy as np
from PIL import Image
from torch import Tensor

from viz_core.trace import Trace
from viz_core.view.map_group import MapGroup

MISSING = object()
_THUMBNAIL = 64  # maximum pixels on a side
_PLAIN = frozenset((str, int, float, bool, bytes, type(None)))


class LRUCache:
    """A thread-safe cache with at most `max_entries` entries and `max_bytes` bytes.

    A result larger than `max_bytes` is stored nevertheless, with the entries that share its tensors: otherwise a page
    would compute it again in every run.
    """

    def __init__(self, max_entries: int, max_bytes: int) -> None:
        self._max_entries, self._max_bytes = max_entries, max_bytes
        self._entries: OrderedDict[Hashable, tuple[Any, Footprint]] = OrderedDict()
        self._holders: Counter[int] = Counter()  # entries that hold a storage
        self._bytes = 0
        self._lock = threading.Lock()

    def get(self, key: Hashable, default: Any = MISSING) -> Any:
        """Return the value of the key, or the default."""
        with self._lock:
            if key not in self._entries:
                return default
            self._entries.move_to_end(key)
            return self._entries[key][0]

    def put(self, key: Hashable, value: Any) -> None:
        """Store a value, and drop others where a bound is exceeded."""
        new = Footprint()
        new.add(key)
        new.add(value)
        with self._lock:
            self._remove(key)
            for storage, size in new.storages.items():
                self._bytes += 0 if self._holders[storage] else size
                self._holders[storage] += 1
            self._bytes += new.own
            self._entries[key] = (value, new)
            for old, (_, footprint) in list(self._entries.items())[:-1]:
                if len(self._entries) <= self._max_entries and self._bytes <= self._max_bytes:
                    break
                if len(self._entries) > self._max_entries or not footprint.storages.keys() & new.storages.keys():
                    self._remove(old)

    @property
    def nbytes(self) -> int:
        return self._bytes

    def __len__(self) -> int:
        return len(self._entries)

    def _remove(self, key: Hashable) -> None:
        if key not in self._entries:
            return
        _, old = self._entries.pop(key)
        self._bytes -= old.own
        for storage, size in old.storages.items():
            self._holders[storage] -= 1
            if not self._holders[storage]:
                del self._holders[storage]
                self._bytes -= size


@dataclass
class Footprint:
    """Approximate size of results in bytes. Storages of tensors may be shared, and are counted once."""

    own: int = 0
    storages: dict[int, int] = field(default_factory=dict)

    @property
    def total(self) -> int:
        return self.own + sum(self.storages.values())

    def add(self, value: Any) -> None:
        """Add a value with all it refers to."""
        if type(value) in _PLAIN:  # nearly all that a result holds: checking the rest took 7% of a page's time
            self.own += sys.getsizeof(value)
        elif isinstance(value, Tensor):
            storage = value.untyped_storage()
            self.storages[storage.data_ptr()] = storage.nbytes()
        elif isinstance(value, np.ndarray):
            self.own += int(value.nbytes)
        elif isinstance(value, Image.Image):
            self.own += value.width * value.height * len(value.getbands())
        elif isinstance(value, dict):
            self._each([*value.keys(), *value.values()])
        elif isinstance(value, (tuple, list)):
            self._each(value)
        elif isinstance(value, Trace):
            self._each([call.source for call in value])
        elif isinstance(value, MapGroup):
            self._each([*(call.source for call in value.calls), value.query_tokens, value.key_tokens, value.image])
            sides = len(value.query_tokens), len(value.key_tokens)
            rows, columns = (min(_THUMBNAIL, side) for side in sides)
            # Thumbnails, and small maps, are computed later, and stay.
            self.own += len(value.heads) * (rows * columns + 512 + (4 * math.prod(sides) if value.is_small else 0))
        elif is_dataclass(value) and not isinstance(value, type):
            self._each([getattr(value, item.name) for item in fields(value) if not item.name.startswith("_")])
        else:
            self.own += sys.getsizeof(value)

    def _each(self, values: Any) -> None:
        self.own += 64
        for value in values:
            self.add(value)


def footprint(value: Any) -> int:
    """Return the approximate size of a result in bytes."""
    counted = Footprint()
    counted.add(value)
    return counted.total
