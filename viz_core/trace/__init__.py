"""One entry point for all attention, a recorder, interventions, and exact weights from queries and keys."""

from viz_core.trace.attend import attend
from viz_core.trace.call import AttentionCall
from viz_core.trace.edits import Edit
from viz_core.trace.files import load_trace, save_trace
from viz_core.trace.intervene import intervene
from viz_core.trace.output_edits import (
    HeadsOff,
    gate,
    head_outputs,
    mean,
    mean_outputs,
    off,
    patch,
    patch_state,
    switched_off,
    zero,
)
from viz_core.trace.passes import name_site, site_of
from viz_core.trace.record import no_recording, record, record_weights, recording_values
from viz_core.trace.sites import find_sites, stack_of
from viz_core.trace.source import Source
from viz_core.trace.states import name_sites
from viz_core.trace.trace import Trace
from viz_core.trace.weight_edits import knock_out, pattern, sharpen, uniform, window
from viz_core.trace.weights import attention_weights

__all__ = [
    "AttentionCall",
    "Edit",
    "HeadsOff",
    "Source",
    "Trace",
    "attend",
    "attention_weights",
    "find_sites",
    "gate",
    "head_outputs",
    "intervene",
    "knock_out",
    "load_trace",
    "mean",
    "mean_outputs",
    "name_site",
    "name_sites",
    "no_recording",
    "off",
    "patch",
    "patch_state",
    "pattern",
    "record",
    "record_weights",
    "recording_values",
    "save_trace",
    "sharpen",
    "site_of",
    "stack_of",
    "switched_off",
    "uniform",
    "window",
    "zero",
]
