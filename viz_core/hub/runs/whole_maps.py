"""Traces of models whose own code gives whole maps or calls one layer several times."""

from typing import Any

from viz_core.trace import Trace, record, record_weights


def trace_of_maps(result: Any, stack: str | None) -> Trace:
    """The maps that a model returned, under the sites our attention would have given them."""
    kinds = {
        "attentions": (stack, "self"),
        "encoder_attentions": ("encoder", "self"),
        "decoder_attentions": ("decoder", "self"),
        "cross_attentions": ("decoder", "cross"),
    }
    with record() as trace:
        for name, (where, kind) in kinds.items():
            maps = getattr(result, name, None) or ()
            for layer, weights in enumerate(weights for weights in maps if weights is not None):
                record_weights(weights.float(), f"{where}.{layer}.{kind}")
    return trace


def layers_apart(trace: Trace) -> Trace:
    """Give each call its layer where layers share their weights and are one module called repeatedly (ALBERT)."""
    if not any("@" in site for site in trace.sites):
        return trace
    numbers: dict[tuple[str, str], int] = {}
    apart = Trace()
    for call in trace:
        layer = numbers.setdefault((call.stack, call.kind), 0)
        apart.add(call.source, f"{call.stack}.{layer}.{call.kind}")
        numbers[call.stack, call.kind] += 1
    return apart
