"""What the tests share: shapes checked at every call, a small corpus, a small translator in the shipped format."""

from __future__ import annotations

import functools
import os
from collections.abc import Iterator
from pathlib import Path

import hypothesis
import jaxtyping
import pytest
import torch
from streamlit.components.v2 import manifest_scanner

from tests import shape_checks

# While tests run, every function of the library and of the chapters checks the shapes and types in its signature.
# An int counts as a float, as it does for mypy; what does not fit is a TypeError, as jaxtyping's own is. This must
# come before the library's first import.
_CHECK = "beartype.beartype(conf=beartype.BeartypeConf(is_pep484_tower=True, violation_type=TypeError))"
shape_checks.install(("viz_core", "pages"), _CHECK)

from recipes.export import export_translator  # noqa: E402
from recipes.sentence_pairs import Pair, Split  # noqa: E402
from recipes.translation import Recipe, State  # noqa: E402
from tests.attacks.record import (  # noqa: E402
    note_target,
    pytest_addoption,
    pytest_configure,
    pytest_make_parametrize_id,
)
from tests.browser.chromium import close_browser  # noqa: E402
from viz_core.pretrained import Translator, build_translation_model, load  # noqa: E402
from viz_core.pretrained.tokenization import train_tokenizer  # noqa: E402

# AppTest looks through all installed packages for components at every run of a page: a third of what a page's test
# took. None is installed while tests run.
manifest_scanner.scan_component_manifests = functools.cache(manifest_scanner.scan_component_manifests)
# The tests' tensors are small: a second thread costs more than it brings, and sums keep their order on any machine.
torch.set_num_threads(1)
os.environ["ATLAS_THREADS"] = "1"
# No test fails because the machine is busy: nothing is too late here, unless a test says what too late is.
os.environ["ATLAS_MAX_SECONDS"] = os.environ["ATLAS_WAIT_SECONDS"] = "1800"
# So for hypothesis too; in continuous integration it draws the same examples each time.
hypothesis.settings.register_profile(
    "atlas",
    deadline=None,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
    derandomize=bool(os.environ.get("CI")),
)
hypothesis.settings.load_profile("atlas")

TINY = "tiny-en-fr"
TINY_MODEL = {
    "architecture": "transformer",
    "num_hiddens": 32,
    "ffn_num_hiddens": 48,
    "num_heads": 4,
    "num_blks": 2,
    "dropout": 0.1,
}

_CORPUS = """
Go.|Va !
I lost.|J'ai perdu.
He's calm.|Il est calme.
I'm home.|Je suis chez moi.
I don't know.|Je ne sais pas.
Where is the cat?|Où est le chat ?
The cat is on the bed.|Le chat est sur le lit.
The dog is in the house.|Le chien est dans la maison.
She reads a book.|Elle lit un livre.
He reads the letter.|Il lit la lettre.
We are at home.|Nous sommes à la maison.
They are happy.|Ils sont heureux.
What time is it?|Quelle heure est-il ?
It's raining today.|Il pleut aujourd'hui.
I have two brothers.|J'ai deux frères.
She has a red car.|Elle a une voiture rouge.
Do you speak French?|Parlez-vous français ?
I like coffee.|J'aime le café.
He drinks cold water.|Il boit de l'eau froide.
We eat bread and cheese.|Nous mangeons du pain et du fromage.
Open the door, please.|Ouvre la porte, s'il te plaît.
Close the window.|Ferme la fenêtre.
My father works here.|Mon père travaille ici.
Her mother sings well.|Sa mère chante bien.
You aren't alone.|Tu n'es pas seul.
That is too expensive.|C'est trop cher.
I bought 3 apples.|J'ai acheté 3 pommes.
The children play outside.|Les enfants jouent dehors.
Nobody came yesterday.|Personne n'est venu hier.
See you tomorrow!|À demain !
The train is late again.|Le train est encore en retard.
We will wait for you.|Nous vous attendrons.
"""


# Folders and files that take long for what they do; who begins with them is not alone with one of them at the end.
_LONG = ("attacks", "browser", "serving", "pages", "training", "test_compiling.py", "test_in_a_kernel.py")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: not any(name in item.path.parts for name in _LONG))
    if os.environ.get("CI"):
        # A server, a browser and a busy machine between them: one that fails is run once more, and both are told.
        for item in items:
            if "browser" in getattr(item, "fixturenames", ()):
                item.add_marker(pytest.mark.flaky(reruns=1))


__all__ = ["pytest_addoption", "pytest_configure", "pytest_make_parametrize_id"]


def pytest_runtest_setup(item: pytest.Item) -> None:
    note_target(item)
    if "browser" not in getattr(item, "fixturenames", ()):
        close_browser()


def pytest_sessionfinish() -> None:
    close_browser()


@pytest.fixture(autouse=True)
def seeded() -> None:
    """The same random numbers in every test, alone or among others."""
    torch.manual_seed(0)


@pytest.fixture
def shapes_unchecked() -> Iterator[None]:
    """The shape checks around the library would refuse a wrong shape first; this lets its own error speak."""
    before = jaxtyping.config.jaxtyping_disable
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", before)


@pytest.fixture(scope="session")
def pairs() -> list[Pair]:
    """32 short sentences with a French translation each."""
    return [Pair(*line.split("|")) for line in _CORPUS.strip().splitlines()]


@pytest.fixture(scope="session")
def checkpoints(tmp_path_factory: pytest.TempPathFactory, pairs: list[Pair]) -> Path:
    """A folder of checkpoints with one model in it: untrained, but in the shipped format to the last file."""
    folder = tmp_path_factory.mktemp("checkpoints")
    out = folder / TINY
    out.mkdir()
    tokenizer = train_tokenizer([text for pair in pairs for text in pair], vocab_size=300)
    tokenizer.save(str(out / "tokenizer.json"))
    config = {"vocab_size": tokenizer.get_vocab_size(), **TINY_MODEL}
    with torch.random.fork_rng():
        torch.manual_seed(1)
        model = build_translation_model(config).eval()
    curve = [{"epoch": 1.0, "train_loss": 3.5, "validation_loss": 3.25, "validation_bleu": 0.5}]
    split = Split(pairs, pairs, pairs)
    export_translator(
        TINY,
        "A tiny Transformer",
        "a Transformer that nobody trained",
        config,
        model,
        tokenizer,
        split,
        State(epoch=1, elapsed=3723.0, curve=curve),
        Recipe(),
        out,
        torch.device("cpu"),
    )
    return folder


@pytest.fixture(scope="session")
def translator(checkpoints: Path) -> Translator:
    """The tiny model, loaded as visitors' requests load the real one."""
    return load(TINY, device="cpu", folder=checkpoints)
