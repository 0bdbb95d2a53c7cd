"""The shipped models where a request asks for a model of the hub."""

from __future__ import annotations

import pytest

from serving.requests.hub import HubModelSpec, HubVisionSpec
from viz_core.hub import HubError, HubVision


def test_the_vision_chapter_gets_the_classifier_itself() -> None:
    shown = HubVisionSpec(HubModelSpec("vit-fashion-mnist")).load(None)
    assert not isinstance(shown, HubVision)
    assert shown.labels[:1] == ("T-shirt/top",)
    with pytest.raises(HubError, match="takes a text, not a picture"):
        HubVisionSpec(HubModelSpec("transformer-en-fr")).load(None)
