"""Every step of the guided tour: its link opens a page as asked for, with what the step then says on it."""

import json
import re
from collections.abc import Callable
from html import unescape

import numpy as np
import pytest
import torch
from huggingface_hub import constants
from streamlit.testing.v1 import AppTest

from tests.pages.reading import badges, components, drawn, figures_alt, heatmap, stands, texts
from tests.visits import Visits
from ui.chapter.tour import Step, steps
from viz_core.hub import load_hub
from viz_core.hub.store.files import SHIPPED_FOLDER
from viz_core.lessons.multi_head import multi_head_steps, trained_input, trained_layer
from viz_core.pretrained import load


def weights(app: AppTest) -> np.ndarray:
    return np.asarray(drawn(app, "weights")[0]["x"])


def without(app: AppTest) -> str:
    """The translation without the heads that are off: the words of its line, not what stands behind them."""
    line = next(each.proto.body for each in app.get("html") if 'id="said-without-' in each.proto.body)
    return " ".join(map(unescape, re.findall(r'tabindex="0"[^>]*><span><bdi>([^<]*)</bdi>', line)))


# What a step says after the guess, to be seen on its page.
SEEN: dict[str, Callable[[AppTest], bool]] = {
    "lookup": lambda app: "Lipten" in str(app.query_params.get("qkv-query")) and weights(app).max() > 0.5,
    "temperature": lambda app: weights(app).max() < 0.2,
    "nearness": lambda app: app.slider(key="ap-query").value == 1.5,
    "score": lambda app: float(re.search(r"rains (0\.\d+)", figures_alt(app))[1]) > 0.5,
    "mask": lambda app: "Hello world" in figures_alt(app),
    "heads": lambda app: app.number_input(key="mh-heads").value == 8,
    "one-head": lambda app: app.number_input(key="mh-heads").value == 1,
    "order": lambda app: badges(app)["No positions: shuffling first or last is the same"],
    "waves": lambda app: heatmap(app)[1].shape == (100, 64),
    "translate": lambda app: "S'il pleut demain, nous n'irons pas à la plage avec les enfants." in texts(app),
    "head": lambda app: "à la plage avec les enfants" in texts(app),
    "off": lambda app: "dans le parc" in texts(app) and without(app) == "Tom et sa sœur jouent au tennis . <eos>",
    "spare": lambda app: "irons pas à la plage avec les enfants" in without(app),
    "writer": lambda app: "It writes: **is a famous singer.**" in texts(app),
    "silenced": lambda app: "Generated without them: **is a famous.**" in texts(app),
}


@pytest.fixture(autouse=True)
def offline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    monkeypatch.delenv("ATLAS_MODELS", raising=False)


@pytest.mark.parametrize("step", steps(), ids=lambda step: step.name)
def test_a_step_opens_on_what_it_says(visits: Visits, step: Step) -> None:
    app = visits(step.chapter, **step.address | {"open-all": "false"})
    stands(app)
    assert not [caption.value for caption in app.caption if "The address" in caption.value]
    params = {name: value if isinstance(value, str) else value[-1] for name, value in app.query_params.items()}
    assert params | {"open-all": ""} == step.address | {"open-all": ""}
    assert SEEN[step.name](app)
    shown = " ".join((texts(app), figures_alt(app), *(each.proto.body for each in app.get("html"))))
    for number in re.findall(r"\d+[.,]\d+|\d+%", step.question("en").why):
        assert number in shown, number
    sent, question = json.loads(components(app, "tour")[0].bytes)["steps"][step.number - 1], step.question("en")
    assert (sent["question"], sent["shown"]) == (question.question, question.why)
    assert question.answers[sent["right"]].mark == "x"
    assert (sent["hides"], sent["also"]) == (list(step.hides), list(step.also))


def test_what_it_says_of_heads_is_so() -> None:
    """Head 1 leans to the word before, 6 to the next, one alone to both; "avec" to "beach"; writer back."""
    state = {step.name: step.state for step in steps()}
    translator = load("transformer-en-fr", device="cpu")
    tokens = trained_input(translator, state["heads"]["mh-text"], 2, 64)
    maps = multi_head_steps(trained_layer(translator, 2, 8), tokens.X[None]).weights[0]
    n = maps.shape[-1]
    for head, wanted in ((0, -1), (5, 1)):
        assert max(range(1 - n, n), key=lambda offset: float(maps[head].diagonal(offset).sum())) == wanted
    alone = multi_head_steps(trained_layer(translator, 2, 1), tokens.X[None]).weights[0, 0]
    shares = [float(alone.diagonal(offset).sum()) / n for offset in (1, 0, -1)]
    assert sum(shares) > 0.95
    assert all(0.2 < share < 0.5 for share in shares)
    found = translator.translate(state["head"]["t-text"])
    row = found.trace["decoder.0.cross"].weights(head=4).reshape(len(found.target_tokens), -1)[13]
    assert (found.target_tokens[13], found.source_tokens[int(row.argmax())]) == ("avec", "beach")
    run = load_hub(SHIPPED_FOLDER / "writer-en").run(text=state["writer"]["ml-start"])
    before = torch.diagonal(run.trace["decoder.2.self"].weights()[0, 2], offset=-1)
    assert float(before.mean()) > 0.5
