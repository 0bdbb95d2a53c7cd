"""Attention, positions and the trace: everything a notebook needs, without Streamlit.

The names below are imported when they are first used, so that `import viz_core` costs nothing.
"""

from typing import TYPE_CHECKING

from viz_core.runtime.hooks import set_viewer
from viz_core.runtime.registry import lazy_names

if TYPE_CHECKING:
    from viz_core.hub import load_hub
    from viz_core.hub.instrument import instrument, restore
    from viz_core.pretrained import available, load
    from viz_core.trace import attend, attention_weights, intervene, record
    from viz_core.view import view

__all__ = [
    "attend",
    "attention_weights",
    "available",
    "instrument",
    "intervene",
    "load",
    "load_hub",
    "record",
    "restore",
    "view",
]

_MODULES = {
    **dict.fromkeys(("attend", "attention_weights", "intervene", "record"), "viz_core.trace"),
    **dict.fromkeys(("available", "load"), "viz_core.pretrained"),
    **dict.fromkeys(("instrument", "load_hub", "restore"), "viz_core.hub"),
    "view": "viz_core.view",
}

__getattr__, __dir__ = lazy_names(__name__, _MODULES)
set_viewer(lambda run: __getattr__("view")(run))
