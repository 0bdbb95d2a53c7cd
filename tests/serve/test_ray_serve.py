"""The app against a real local Ray Serve of two replicas, one of which is killed while it is used.

`make serve-test` installs Ray and runs this.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

ray = pytest.importorskip("ray", reason="make serve-test installs Ray")

from ray import serve  # noqa: E402
from streamlit.testing.v1 import AppTest  # noqa: E402

from hosting.models import Shipped  # noqa: E402
from hosting.ray_serve import APPLICATION, PoolSize, on_serve, pool  # noqa: E402
from hosting.runner import There  # noqa: E402
from hosting.sentences import Sentence  # noqa: E402
from viz_core.figures.translation import aligning_head  # noqa: E402
from viz_core.pretrained import TextError, load_translator  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
MODEL = "transformer-en-fr"
PATIENCE = 300.0
SUBJECTS = ("The cat", "My father", "The old dog", "Our teacher", "A little girl", "The train")
VERBS = ("is here", "was late", "likes the sea", "has a book", "works at home", "saw the moon", "came back", "is calm")
SENTENCES = [f"{subject} {verb}." for subject in SUBJECTS for verb in VERBS]


@pytest.fixture(scope="module")
def runner() -> Iterator[There]:
    """A pool of two replicas on this machine, and what asks it."""
    ray.init(log_to_driver=False, namespace="serve")  # the cluster of RAY_ADDRESS where there is one, else its own
    serve.run(pool(PoolSize(min_replicas=2, max_replicas=2, cpus=0.5)), name=APPLICATION, route_prefix=None)
    yield on_serve("auto")
    serve.shutdown()
    ray.shutdown()


def replicas() -> list[str]:
    names = ray.util.list_named_actors(all_namespaces=True)
    return [one["name"] for one in names if one["name"].startswith(f"SERVE_REPLICA::{APPLICATION}#models")]


def kill_one() -> None:
    ray.kill(ray.get_actor(replicas()[0], namespace="serve"))


def test_a_replica_dies_and_no_answer_is_wrong_or_lost(runner: There) -> None:
    """Four visitors ask on; in the middle, a replica is killed. All answers come, and all are those of a model here."""
    local = load_translator(MODEL, device="cpu")
    assert len(replicas()) == 2
    answered: dict[str, tuple[tuple[int, ...], torch.Tensor, torch.Tensor]] = {}
    lost: list[tuple[str, BaseException]] = []
    middle = threading.Event()

    def visitor(number: int) -> None:
        for text in SENTENCES[number::4]:
            try:
                sentence = Sentence(Shipped(MODEL), text)
                groups = runner.groups(sentence, dict.fromkeys(LABELS, "label"))
                made = runner.run(sentence)
                picture = groups[-1].picture(2).thumbnails
                answered[text] = made.target_ids, made.trace["decoder.2.cross"].weights(), picture
            except BaseException as error:
                lost.append((text, error))
            if len(answered) > len(SENTENCES) // 4:
                middle.set()

    visitors = [threading.Thread(target=visitor, args=(number,)) for number in range(4)]
    for one in visitors:
        one.start()
    assert middle.wait(PATIENCE)
    kill_one()
    for one in visitors:
        one.join(PATIENCE)
    assert lost == []
    assert answered.keys() == set(SENTENCES)
    for text, (target_ids, weights, picture) in answered.items():
        alone = local.translate(text)
        assert target_ids == alone.target_ids, text
        torch.testing.assert_close(weights, alone.trace["decoder.2.cross"].weights(), rtol=0, atol=1e-5)
        assert picture.shape[0] == alone.trace["decoder.2.cross"].num_heads


def test_the_chapter_runs_on_the_pool(runner: There, monkeypatch: pytest.MonkeyPatch) -> None:
    """The Transformer's page, before and after a replica dies: the same translation, and every claim holds."""
    import streamlit as st

    monkeypatch.setenv("ATLAS_RUNNER", "serve")
    st.cache_resource.clear()
    app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=PATIENCE)
    app.switch_page("pages/transformer.py").run()
    for text in ("He is at home.", "She reads a good book."):
        app.text_input(key="t-text").set_value(text).run()
        assert not app.exception
        translated = load_translator(MODEL, device="cpu").translate(text).text
        assert translated in " ".join(one.value.replace("\\", "") for one in app.markdown)
        marks = [
            one.value for one in app.markdown if ":material/check:" in one.value or ":material/close:" in one.value
        ]
        assert len(marks) >= 4
        assert not [mark for mark in marks if ":material/close:" in mark]
        kill_one()
    st.cache_resource.clear()


def test_errors_are_sentences_without_a_stack_trace(runner: There) -> None:
    with pytest.raises(TextError) as caught:
        runner.run(Sentence(Shipped(MODEL), " "))
    assert str(caught.value) == "There is nothing to translate yet: type an English sentence."
    with pytest.raises(ValueError, match="There is no model 'nothing'") as missing:
        runner.run(Sentence(Shipped("nothing"), "Go."))
    assert "Traceback" not in str(missing.value)


def test_the_open_head_is_the_one_that_a_model_here_would_open(runner: There) -> None:
    from hosting.keeping import Kept
    from hosting.runner import Here

    here = Here(lambda model: load_translator(model.name, device="cpu"), Kept(8, 2**24))
    sentence, labels = Sentence(Shipped(MODEL), "The black cat sleeps."), dict.fromkeys(LABELS, "label")
    assert aligning_head(runner.groups(sentence, labels)) == aligning_head(here.groups(sentence, labels))


LABELS = ("encoder-self", "decoder-self", "cross", "english", "french", "written")
