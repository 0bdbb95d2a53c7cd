"""The lab's models and their runs; one model serves all sessions."""

from __future__ import annotations

from pages.model_lab.background_work import Progress
from serving.requests.hub import HubModelSpec, HubRequest
from serving.requests.lab_queries import read_card
from ui.compute.models import map_groups, run, runner
from viz_core.hub import HubCard, HubRun
from viz_core.maps.contribution_shares import ContributionKind
from viz_core.view.map_group import MapGroup

CURATED = {
    "google-bert/bert-base-uncased": "encoder",
    "openai-community/gpt2": "decoder",
    "Qwen/Qwen3-0.6B": "decoder",
    "Helsinki-NLP/opus-mt-en-de": "encoder-decoder",
    "google-t5/t5-small": "encoder-decoder",
    "HuggingFaceTB/SmolVLM-256M-Instruct": "vision-language",
    "google/siglip-base-patch16-224": "dual-encoder",
    "openai/whisper-tiny": "speech",
    "facebook/dinov2-small": "vision",
    "google/vit-base-patch16-224": "vision",
}
"""Small models by name with their kind, all with safetensors, offered where no host says otherwise."""


def hub_card(model: HubModelSpec, progress: Progress) -> HubCard:
    """Load a model and return its card.

    Raises:
        HubError: if it cannot be had or run here.
        ValueError: if ATLAS_DEVICE names a device that is not here.
    """
    runner().load(model, progress)
    return runner().evaluate_model(model, read_card)


def hub_run(request: HubRequest) -> HubRun:
    """A run with its trace.

    Raises:
        HubError: if this is not an input for this model.
    """
    return run(request, "hub_run")


def hub_maps(request: HubRequest, language: str, contribution_kind: ContributionKind = "") -> tuple[MapGroup, ...]:
    """The maps of a run as an attention view shows them."""
    return map_groups(request, "model-lab", language, contribution_kind)
