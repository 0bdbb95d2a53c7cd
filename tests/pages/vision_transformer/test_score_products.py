"""Query times key of two patches of a picture."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from tests.pages.reading import drawn, stands
from tests.tiny_vit import GREY
from viz_core.images.drawn import drawn_picture
from viz_core.maps.score_products import score_products
from viz_core.pretrained import load_classifier


@pytest.mark.usefixtures("small_vision_models")
def test_a_patch_in_the_middle_asks_the_one_before(open_page: Callable[..., AppTest], vision_checkpoints: Path) -> None:
    parameters = {"vt-model": GREY, "vt-section": "Query times key", "head": "encoder-self.1.1"}
    app = open_page("vision-transformer", **parameters)
    stands(app)
    call = (
        load_classifier(GREY, "cpu", vision_checkpoints).classify(drawn_picture("ankle-boot")).trace["encoder.1.self"]
    )
    middle = call.num_queries // 2
    found = score_products(call, 1, middle, middle - 1)
    np.testing.assert_allclose(drawn(app, "score-products")[0]["y"], found.products, atol=1e-6)
    assert any("**row " in caption.value for caption in app.caption)  # patches by their places
