"""Questions about single scores of a recorded run, in the form that a runner calls."""

from __future__ import annotations

from typing import Any

import torch

from viz_core.circuits import ScoreAttribution, score_attribution
from viz_core.hub import HubModel, HubRun
from viz_core.maps.score_products import ScoreProducts, score_products
from viz_core.pretrained import ImageClassifier, Translation, Translator
from viz_core.trace import HeadsOff, intervene, no_recording, record, switched_off
from viz_core.trace.source import Projected


def products_of_pair(_model: Any, run: Any, site: str, head: int, query: int, key: int, row: int = 0) -> ScoreProducts:
    """`score_products` of a recorded run.

    Raises:
        KeyError: if the run has no such site.
        IndexError, ValueError: as `score_products`.
    """
    return score_products(run.trace[site], head, query, key, row)


def keeps_queries_and_keys(_model: Any, run: Any, site: str) -> bool:
    """Whether a call of a run has scores for `score_products`: not a map recorded whole, nor one without a softmax."""
    call = run.trace[site]
    return isinstance(call.source, Projected) and not call.signed


@torch.inference_mode()
def score_by_parts(
    model: Any, run: Any, site: str, head: int, query: int, key: int, row: int = 0, off: HeadsOff = ()
) -> ScoreAttribution:
    """`score_attribution` of a recorded run, whose pass is repeated with the states of its layers.

    Args:
        off: heads that are switched off in it.

    Raises:
        ValueError: as `score_attribution`; if the pass cannot be repeated.
    """
    edits = intervene(switched_off(off))
    if isinstance(model, HubModel) and isinstance(run, HubRun):
        with model.engine.serial, no_recording(), edits, record(values=True, states=True) as trace:
            if run.inputs and "pixels" in run.inputs:  # of a classifier that ships
                model.network(*run.inputs.values())
            else:
                model.network(**run.inputs)
        return score_attribution(model.network, trace, site, head, query, key, row)
    if isinstance(model, Translator) and isinstance(run, Translation):
        inputs: tuple[Any, ...] = model.teacher_forced(run.source_ids, run.target_ids)
    elif isinstance(model, ImageClassifier):
        inputs = (run.prepared.pixels.to(model.device),)
    else:
        raise ValueError("model: expected one whose pass can be repeated, got another")
    with no_recording(), edits, record(values=True, states=True) as trace:
        model.model(*inputs)
    return score_attribution(model.model, trace, site, head, query, key, row)
