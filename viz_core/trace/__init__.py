"""The heart: one door for all attention, a recorder, and the exact way back from queries and keys to weights."""

from viz_core.trace.call import AttentionCall
from viz_core.trace.recording import Trace, attend, record, record_weights, unrecorded
from viz_core.trace.source import Source

__all__ = ["AttentionCall", "Source", "Trace", "attend", "record", "record_weights", "unrecorded"]
