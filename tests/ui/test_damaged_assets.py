"""What ships with the code, damaged: what reads a file says so in a sentence that names it, or nothing is lost."""

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

import ui.text.words
from pages.learning import parts as past_length
from pages.learning import rounds as two_heads
from pages.learning import runs as measured_run
from ui.text.markdown import unescape
from viz_core.hub import HubError, load_hub
from viz_core.pretrained import samples
from viz_core.runtime.assets import ASSETS, AssetError, reading
from viz_core.view import components

DOOR = Path(__file__).resolve().parents[2] / "ui" / "app" / "main.py"
WANTED = {file.stem: ui.text.words.load_words(file.stem, "en") for file in (ASSETS / "text" / "en").glob("*.md")}
DAMAGE: dict[str, Callable[[bytes, bytes], bytes | None]] = {
    "cut short": lambda whole, _: whole[: len(whole) // 3],
    "swapped for another": lambda _, other: other,
    "missing": lambda _whole, _other: None,
}


@pytest.fixture(scope="module")
def shipped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of all that ships but the checkpoints, which tests/viz_core/pretrained damages."""
    return Path(
        shutil.copytree(ASSETS, tmp_path_factory.mktemp("a") / "assets", ignore=shutil.ignore_patterns("checkpoints"))
    )


@contextmanager
def damaged(path: Path, damage: str) -> Iterator[None]:
    """The file so damaged, and whole again."""
    whole = path.read_bytes()
    other = next(each for each in sorted(path.parent.parent.rglob("*.*")) if each.is_file() and each != path)
    content = DAMAGE[damage](whole, other.read_bytes())
    path.unlink()
    if content is not None:
        path.write_bytes(content)
    ui.text.words._words.cache_clear()
    try:
        yield
    finally:
        path.write_bytes(whole)
        ui.text.words._words.cache_clear()


def read_words(file: Path) -> None:
    """Everything that a page says is there."""
    wanted = WANTED[file.stem]
    ui.text.words._parse.cache_clear()
    words = ui.text.words.load_words(file.stem, "en")
    assert words.title
    for name in wanted.sections:
        words(name)
    for name in wanted.front.get("controls", {}):
        words.label(name)


def read_view_words(file: Path) -> None:
    components._words.cache_clear()
    with reading(file):
        assert components.view_words().keys() >= WANTED[file.stem].sections.keys()


SAMPLES: dict[str, Any] = {"sentences.json": samples.sentences, "fashion-mnist-test.json": samples.shipped_pictures}
"""What reads a file, by its name."""


def read_samples(file: Path) -> None:
    SAMPLES[file.name].cache_clear()
    SAMPLES[file.name]()


def read_component(file: Path) -> None:
    components.read_component.cache_clear()
    name = file.relative_to(components.COMPONENTS).parts[0]
    components.read_component("chart" if name == "shared" else name)


def read_film(file: Path) -> None:
    if file.suffix == ".json":
        past_length.measured.clear()
        past_length.measured()
    elif file.suffix == ".safetensors":
        two_heads.shipped_model.clear()
        two_heads.shipped_model()
    else:
        measured_run.recorded.clear()
        name, _, seed = file.stem.rpartition("-")
        measured_run.recorded(name, int(seed))


def read_model(file: Path) -> None:
    load_hub(file.parent, device="cpu", offline=True).run("He is calm.", max_new_tokens=1)


PLACES: tuple[tuple[Any, str, str], ...] = (
    (ui.text.words, "TEXT", "text"),
    (components, "TEXT", "text"),
    (components, "COMPONENTS", "components"),
    (past_length, "RECORDED", "learning"),
    (measured_run, "RECORDED", "learning"),
    (samples, "_SHEET", "samples/fashion-mnist-test"),
    (samples, "_SENTENCES", "samples/sentences.json"),
)
KINDS: dict[str, tuple[str, Callable[[Path], None]]] = {
    "words": ("text/en/*.md", read_words),
    "the view's words": ("text/en/attention-view.md", read_view_words),
    "samples": ("samples/*s*.json", read_samples),
    "components": ("components/h*/*.*", read_component),
    "recorded runs": ("learning/*[!d]", read_film),
    "a model in Hugging Face's format": ("hub/writer-en/[cmt]*", read_model),
}
"""Files, and what reads one."""


@pytest.mark.attack("shipped files")
@pytest.mark.parametrize("damage", DAMAGE)
@pytest.mark.parametrize("kind", KINDS)
def test_a_file_of_a_kind(kind: str, damage: str, shipped: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module, name, place in PLACES:
        monkeypatch.setattr(module, name, shipped / place)
    pattern, read = KINDS[kind]
    files = sorted(shipped.glob(pattern))
    messages = []
    for file in files:
        with damaged(file, damage):
            try:
                read(file)
            except (AssetError, HubError) as error:
                messages.append(str(error))
    read(files[0])
    assert messages or damage == "swapped for another"
    assert all(len(sentence) < 300 for sentence in messages)


@pytest.mark.attack("shipped files")
@pytest.mark.usefixtures("seeded")
def test_a_page_says_which_file_it_lacks(shipped: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ui.text.words, "TEXT", shipped / "text")
    with damaged(shipped / "text/en/home.md", "missing"):
        app = AppTest.from_file(str(DOOR), default_timeout=600).run()
    assert not app.exception
    (message,) = (error.value for error in app.error)
    assert unescape(message) == "The file home.md of the Atlas is missing or damaged. Install the Atlas again."
    path = ASSETS / "text/en/home.md"
    with pytest.raises(AssetError, match=r"The file text/en/home\.md of the Atlas is"), reading(path):
        raise KeyError("whatever its reader says")
