"""The table of contents, and the index page."""

import re
import socket
from pathlib import Path

import pytest
import streamlit
from starlette.applications import Starlette
from starlette.testclient import TestClient
from streamlit import config

from serving.http import static_scripts as scripts
from serving.http.security_headers import policy
from serving.http.static_scripts import script
from ui.app import index_page, local_middleware
from ui.chapter.contents import ROOT, SECTIONS, all_chapters, all_pages, chapter_entries, chapters, folder, page_file
from ui.chapter.exercises import NUMBERS, idea_of, reviewed_chapters
from ui.chapter.tour import requested_step, steps
from ui.text.words import COOKIE, ENGLISH, languages, load_words
from ui.widgets.predictions import read_prediction

SCRIPTS = Path(streamlit.__file__).parent / "static" / "static" / "js"


@pytest.mark.parametrize("chapter", chapter_entries())
def test_a_chapter_has_all_that_it_needs(chapter: str) -> None:
    """A chapter is a folder and its words: this says what is missing."""
    entry, home = chapter_entries()[chapter], load_words("home", ENGLISH)
    assert page_file(chapter).is_file()
    parts = [path.read_text("utf-8") for path in page_file(chapter).parent.glob("*.py")]
    assert any("def gallery_picture(" in text for text in parts), "its picture for the home page"
    assert (ROOT / "assets" / "gallery" / f"{chapter}.png").is_file(), "draw it: python -m pages.home.draw"
    assert [name for name in ("alt", "teaser") if not home.has(f"{name}.{chapter}")] == []
    for language in languages():
        assert load_words(chapter, language).title
    assert all(script(component).address for component in entry.components)
    assert [name for name in entry.streamlit_scripts if not list(SCRIPTS.glob(f"{name}.*.js"))] == []
    assert (ROOT / "tests" / "pages" / folder(chapter) / "test_page.py").is_file()


def test_every_page_is_registered() -> None:
    assert {page_file(name) for name in all_pages()} == set((ROOT / "pages").glob("*/page.py"))
    assert [name for section in SECTIONS for name in chapters(section)] == all_chapters()[1:]
    assert all(chapters(section) for section in SECTIONS)


def test_no_two_chapters_share_a_prefix_of_query_parameters() -> None:
    prefixes = [load_words(chapter, ENGLISH).prefix for chapter in all_pages()]
    assert len(prefixes) == len(set(prefixes))
    links = {"transformer": "t", "vision-transformer": "vt", "queries-keys-values": "qkv", "model-lab": "ml"}
    assert {chapter: load_words(chapter, ENGLISH).prefix for chapter in links} == links, "links name them"


MAX_LETTERS = 200


def test_it_leads_through_the_chapters_in_reading_order_and_ends_in_the_model_lab() -> None:
    assert 12 <= len(steps()) <= 16
    assert len({step.name for step in steps()}) == len(steps())
    places = [all_chapters().index(step.chapter) for step in steps()]
    assert places[0] == 1
    assert steps()[-1].chapter == all_chapters()[-1]
    turns = [
        step.chapter
        for step, after in zip(steps(), [*steps()[1:], None], strict=True)
        if not after or step.chapter != after.chapter
    ]
    assert len(turns) == len(set(turns)), "no chapter is left and come back to"


@pytest.mark.parametrize("language", languages())
def test_each_step_asks_one_question_and_says_one_short_thing_in_every_language(language: str) -> None:
    """Two or three answers, the same one right as in English, and plain words: no Markdown is read there."""
    for step in steps():
        question, english = step.question(language), step.question("en")
        assert 2 <= len(question.answers) <= 3
        assert [answer.mark for answer in question.answers] == [answer.mark for answer in english.answers]
        assert not any(answer.reply for answer in question.answers)
        content = [question.question, question.why, *(answer.text for answer in question.answers)]
        assert max(map(len, content)) <= MAX_LETTERS
        assert not [each for each in content if re.search(r"[*_`$\n]|\{", each)]
    assert load_words("tour", language).group("step").keys() == {step.name for step in steps()}


@pytest.mark.parametrize("value", ["0", "99", "abc", "1e9", "-1", "01", "", "²", "٣", None])
def test_a_step_is_one_of_its_own_chapter_alone(value: str | None) -> None:
    first, last = steps()[0], steps()[-1]
    assert requested_step(first.chapter, value) is None
    assert requested_step(first.chapter, "1") == first
    assert requested_step(last.chapter, "1") is requested_step("home", "1") is None


CHAPTERS = all_chapters()[1:]


@pytest.mark.parametrize("language", languages())
@pytest.mark.parametrize("chapter", CHAPTERS)
def test_a_chapter_that_teaches_has_two_questions_whose_wrong_answers_have_replies(chapter: str, language: str) -> None:
    assert chapter in reviewed_chapters() or not load_words(chapter, language).has("takeaways")
    for number in NUMBERS if chapter in reviewed_chapters() else ():
        texts = (load_words("review", each)(f"{chapter}.{number}") for each in (language, ENGLISH))
        found, english = map(read_prediction, texts)
        assert [answer.mark for answer in found.answers] == [answer.mark for answer in english.answers]
        assert len(found.answers) > 2
        assert all(bool(answer.reply) == (answer.mark != "x") for answer in found.answers)
        assert idea_of(found.question)
    assert idea_of("**Mask** How?") == "Mask"
    with pytest.raises(ValueError, match="idea in bold"):
        idea_of("How?")


STATIC = Path(streamlit.__file__).parent / "static"


@pytest.fixture
def client() -> TestClient:
    return TestClient(Starlette(routes=[*scripts.routes(), *index_page.routes()]))


def named_in(page: str) -> list[str]:
    return re.findall(r'<link rel="(?:module)?preload"[^>]* href="\./([^"]+\.js)"', page)


@pytest.mark.attack("cross-site")
@pytest.mark.parametrize("chapter", CHAPTERS)
def test_a_chapter_names_what_it_will_need(client: TestClient, chapter: str) -> None:
    answer = client.get(f"/class/{chapter}?lang=en")
    assert answer.headers["cache-control"] == "no-cache"
    named = named_in(answer.text)
    assert len(named) == len(set(named))
    ours = [name for name in named if name.startswith("atlas/")]
    assert [client.get(f"/class/{name}").status_code for name in ours] == [200] * len(ours)
    assert all((STATIC / name).is_file() for name in named if name not in ours)
    chunks = ("BidiComponent", "Slider", "ButtonGroup", *chapter_entries()[chapter].streamlit_scripts)
    assert all(any(f"/{chunk}." in name for name in named) for chunk in chunks)
    plain = (STATIC / "index.html").read_text(encoding="utf-8")
    assert set(plain.splitlines()) <= set(answer.text.splitlines())  # nothing of Streamlit's own is gone


@pytest.mark.attack("cross-site")
def test_home_names_its_own_and_is_where_the_app_is_served(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    named = named_in(client.get("/").text)
    assert {scripts.script(name).address for name in ("linked_sentences", "history", "tour")} < set(named)
    assert any("/ImageList." in name for name in named)
    assert not any("/Slider." in name or "plotly" in name for name in named)
    assert client.get("/transformer/x").status_code == 404  # Streamlit's to answer
    monkeypatch.setattr(index_page.st, "get_option", {"server.baseUrlPath": "/class/2/"}.__getitem__)
    client = TestClient(Starlette(routes=index_page.routes()))
    assert [client.get(path).status_code for path in ("/class/2/", "/")] == [200, 404]


@pytest.mark.attack("cross-site")
def test_an_address_that_is_no_page_is_styled_as_home_and_files_are_left_to_streamlit(client: TestClient) -> None:
    for path in ("/home", "/nobody", "/a-transformer"):
        assert client.get(path).text == index_page.index_page(all_pages()[0])
    assert [client.get(path).status_code for path in ("/favicon.png", "/_stcore", "/static/none")] == [404] * 3


@pytest.mark.attack("cross-site")
@pytest.mark.parametrize(
    ("address", "cookie", "language"),
    [
        ("", "", "en"),
        ("", "pt-BR", "pt-BR"),
        ("?lang=zh-TW", "pt-BR", "zh-TW"),
        ("?lang=xx", "pt", "pt-BR"),
        ('?lang="><script>', "<b>", "en"),
    ],
)
def test_the_page_has_the_language_of_its_address_or_of_the_cookie(
    client: TestClient, address: str, cookie: str, language: str
) -> None:
    page = client.get(f"/transformer{address}", headers={"cookie": f"{COOKIE}={cookie}"}).text
    assert re.findall("<html[^>]*>", page) == [f'<html lang="{language}">']


@pytest.mark.attack("cross-site")
def test_the_scripts_that_stand_in_them_may_run_where_strangers_visit() -> None:
    pages = [index_page.index_page(name) for name in all_pages()]
    inline = {script for page in pages for script in re.findall(r"<script>(.*?)</script>", page, flags=re.DOTALL)}
    assert policy(pages="".join(pages)).count("'sha256-") == len(inline) > 0
    assert all("window.__streamlit" in page for page in pages)


@pytest.mark.attack("cross-site")
def test_the_names_of_this_machine_and_what_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    options: dict[str, object] = {
        "server.enableCORS": True,
        "server.allowedHosts": ["lab.example"],
        "server.corsAllowedOrigins": ["https://atlas.example"],
        "server.address": "localhost",
        "browser.serverAddress": None,
    }
    monkeypatch.setattr(config, "get_option", options.__getitem__)
    names = local_middleware._own_names()
    assert names is not None
    assert {socket.gethostname(), "lab.example"} <= set(names)
    assert local_middleware._trusted_origins() == ["https://atlas.example"]
