"""Models of Hugging Face: load one, run it, inspect every attention map.

>>> model = load_hub("reader-en")  # a name, of the Hub's too; a folder is given as a Path
>>> run = model.run("The cat sat on the mat.")
>>> run.trace["encoder.0.self"].weights()
>>> run.view()  # in a cell of a notebook

transformers is imported when the first model is loaded, not before.
"""

from viz_core.hub.attention import ATTENTION_IMPLEMENTATION, register
from viz_core.hub.instrument import coverage, instrument, restore
from viz_core.hub.load import load_hub
from viz_core.hub.model import HubCard, HubModel
from viz_core.hub.runs.generation import Sampling
from viz_core.hub.runs.pictures import PatchGrid
from viz_core.hub.runs.positions import Positions
from viz_core.hub.runs.run import Frame, HubRun, Label, Maps, NextWord
from viz_core.hub.runs.token_text import Token
from viz_core.hub.store import HubError, check_name, check_revision, human_bytes
from viz_core.hub.store.files import LocalModel, local_models
from viz_core.hub.verify import verify
from viz_core.hub.vision import HubVision
from viz_core.hub.word_timestamps import TimedWord, word_times
from viz_core.trace.coverage import LayerCoverage
from viz_core.trace.verification import Verification

__all__ = [
    "ATTENTION_IMPLEMENTATION",
    "Frame",
    "HubCard",
    "HubError",
    "HubModel",
    "HubRun",
    "HubVision",
    "Label",
    "LayerCoverage",
    "LocalModel",
    "Maps",
    "NextWord",
    "PatchGrid",
    "Positions",
    "Sampling",
    "TimedWord",
    "Token",
    "Verification",
    "check_name",
    "check_revision",
    "coverage",
    "human_bytes",
    "instrument",
    "load_hub",
    "local_models",
    "register",
    "restore",
    "verify",
    "word_times",
]
