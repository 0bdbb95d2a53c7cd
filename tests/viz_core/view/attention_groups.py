"""Groups of maps for the tests of the attention view, random but the same every time; and what a browser asks."""

from typing import Any

import torch

from viz_core.trace import attend, record
from viz_core.view.map_group import MapGroup
from viz_core.view.payload import View
from viz_core.view.requests import ViewRequest, read_request
from viz_core.view.save import saved_view
from viz_core.view.state import ViewState


def make_group(
    queries: int, keys: int, name: str = "cross", layers: int = 2, heads: int = 3, **changes: Any
) -> MapGroup:
    """Random attention; a "cross" group attends to another sequence, any other to itself."""
    generator = torch.Generator().manual_seed(1000 * queries + keys)
    kind = "cross" if name == "cross" else "self"
    with record() as trace:
        for layer in range(layers):
            q = torch.randn(1, heads, queries, 8, generator=generator) * 3
            k = torch.randn(1, heads, keys, 8, generator=generator)
            attend(q, k, k, site=f"decoder.{layer}.{kind}")
    fields = {
        "query_tokens": tuple(f"q{i}" for i in range(queries)),
        "key_tokens": tuple(f"k{i}" for i in range(keys)),
        "calls": tuple(trace),
    }
    return MapGroup(name, name.title(), "French", "English", **(fields | changes))


def read_requests(*names: str) -> list[ViewRequest]:
    """What a browser asks for by these names."""
    return [read_request(name) for name in names]


def page_of(view: View, state: ViewState, **options: Any) -> str:
    """Return the HTML page that a view is saved as."""
    return saved_view(view, state, ".html", **options).decode()
