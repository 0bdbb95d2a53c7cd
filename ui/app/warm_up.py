"""Work before the first visitor: load the models that are offered, and run those that ship once."""

import time

import ui.chapter.chapter  # noqa: F401  # with it come the libraries that every chapter needs
from serving.compute.slots import working_for
from serving.compute.turns import NOBODY
from serving.logs import log, where
from serving.requests.models import ShippedClassifier, ShippedTranslator
from serving.requests.shipped import ClassificationRequest
from serving.settings import settings
from ui.compute.models import runner, sentence_request, translation_maps
from ui.compute.pictures import picture_maps, sample_picture
from ui.text.words import ENGLISH
from viz_core.pretrained import available
from viz_core.pretrained.samples import GARMENTS, SCENES, sentences

_QUIET = 20.0  # seconds


@working_for(NOBODY)  # not in a slot, for all of which visitors may be waiting already
def warm_up() -> None:
    """Run every model that ships once: the first forward pass of a process takes several times as long as the next.

    A lab model that cannot be loaded is logged, and the server is ready all the same.

    Raises:
        CheckpointError: if a model that ships cannot be loaded.
        ValueError: if ATLAS_DEVICE names a device that is not here.
    """
    first = sentences()[0].english
    for card in available(task="translation"):
        sample = sentence_request(card.name, first)
        runner().warm(sample)
        translation_maps(sample, ENGLISH)
    for card in available(task="classification"):
        samples = GARMENTS if card.config["model"]["num_channels"] == 1 else SCENES
        request = ClassificationRequest(ShippedClassifier(card.name), sample_picture(samples[0]))
        runner().warm(request)
        picture_maps(request, ENGLISH)
    if settings().models:
        from serving.requests.hub import HubModelSpec  # imports the hub's libraries: only where they are needed

        for name in settings().models[: HubModelSpec.max_loaded]:
            try:
                runner().load(HubModelSpec(name))
            except ValueError as error:
                log.warning("a model of the lab could not be loaded", model=name, error=where(error))


def load_first() -> None:
    """Load the translator, which most chapters use; importing this module has loaded the libraries."""
    runner().load(ShippedTranslator("transformer-en-fr"))


def load_later() -> None:
    """Import transformers some time after the first pages were sent, so that the lab's first visitor need not wait.

    It takes 7 s alone, and up to a minute while other processes start. Until then the lab says what is being loaded.
    """
    time.sleep(_QUIET)
    from serving.requests.hub import bring_libraries

    bring_libraries()
