"""The course pack: lessons are whole and alike in three languages, keys are right, and packs are valid."""

import re
import zipfile
from pathlib import Path
from types import ModuleType
from urllib.parse import parse_qsl, urlsplit
from xml.etree import ElementTree

import pytest
import torch

from tests.source_files import ROOT, script
from ui.text.words import load_words
from ui.widgets.predictions import read_prediction
from ui.widgets.sidebar import static_pages
from viz_core.attention import MultiHeadAttention
from viz_core.lessons.queries_keys_values import BOOK_DATABASE, soft_lookup
from viz_core.positional import sinusoidal_table

TEACH = ROOT / "docs" / "teach"


def course() -> ModuleType:
    return script(TEACH / "course.py")


LANGUAGES = course().LANGUAGES
LESSONS = range(1, 7)


def lesson(language: str, number: int):
    return course().read_lesson(TEACH / language / f"lesson-{number}.md")


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("number", LESSONS)
def test_a_lesson_is_whole(language: str, number: int) -> None:
    it = lesson(language, number)
    assert sum(it.minutes) == course().MINUTES
    assert it.sections["goals"].count("\n- ") >= 3
    assert len(course().items(it.sections["slides"])) >= 3
    assert len(course().items(it.sections["homework"])) == 2
    assert len(course().items(it.sections["sheet"])) == len(course().items(it.sections["key"])) >= 5
    assert list(it.headings.values()) == list(lesson(language, 1).headings.values())
    assert {dict(parse_qsl(urlsplit(link).query))["lang"] for link in it.links()} == {language}
    for link in course().app_links(it.sections["slides"] + it.sections["vote"]):
        assert "present=" in link or "t-without=" in link  # translations with a head off are on the page itself


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("number", LESSONS)
def test_a_vote_has_the_answers_of_the_page(language: str, number: int) -> None:
    """Each in bold, the right one first; a question that is not on a page is in the lesson."""
    vote = lesson(language, number).sections["vote"]
    answers = re.findall(r"\*\*(.+?)\*\*", vote)
    (link,) = course().app_links(vote)
    chapter, begin = urlsplit(link).path, dict(parse_qsl(urlsplit(link).query))["present"]
    if not begin.startswith("exercise-"):
        assert re.search("[?？]", vote.split("\n")[0].split(")")[1])
        assert len(answers) >= 3
        return
    question = read_prediction(load_words(chapter, language)(begin.replace("-", ".", 1)))
    right = [answer.text for answer in question.answers if answer.mark == "x"]
    assert answers == right + [answer.text for answer in question.answers if answer.text not in right]


def written(number: float, language: str, places: int) -> str:
    text = f"{number:.{places}f}"
    return text.replace(".", ",") if language == "pt-BR" else text


def softmax(*scores: float) -> list[float]:
    return torch.softmax(torch.tensor(scores, dtype=torch.float64), 0).tolist()


def lookup(query: str, key: str, temperature: float) -> float:
    keys = [name for name, _ in BOOK_DATABASE]
    return float(soft_lookup([query], keys, temperature)[0][keys.index(key)])


def computed() -> list[tuple[int, str, int, list[float], int]]:
    """Lesson, section, item, numbers that are written there, and their decimal places."""
    row = sinusoidal_table(2, 4, dtype=torch.float64)[1].tolist()
    products = [sum(a * b for a, b in zip((1, 2, 0, 1), key, strict=True)) for key in ((2, 1, 3, 0), (0, 1, 5, 0))]
    causal = torch.softmax(torch.zeros(4, 4).masked_fill(torch.ones(4, 4).triu(1).bool(), -torch.inf), -1)
    return [
        (1, "slides", 1, [0.2, lookup("Li", "Li", 0.2), 1 - lookup("Li", "Li", 0.2)], 0),
        (1, "slides", 1, [lookup("Li", "Li", 0.2), 1 - lookup("Li", "Li", 0.2)], 2),
        (1, "slides", 2, [lookup("Lipten", "Lipton", 0.2)], 2),
        (1, "key", 1, softmax(1, 0), 3),
        (1, "key", 2, softmax(2, 0), 3),
        (1, "key", 3, [0.75 * 10 + 0.25 * 20], 1),
        (2, "key", 1, [*products, *(each / 2 for each in products)], 0),
        (2, "key", 2, softmax(*(each / 2 for each in products)), 3),
        (2, "key", 3, softmax(1, 0, 3), 3),
        (3, "key", 1, [64 / 8], 0),
        (3, "key", 3, [8 * 10**2, 4 * 10**2], 0),
        (4, "key", 1, row, 3),
        (4, "key", 2, [2 * torch.pi], 2),
        (4, "key", 2, [2 * torch.pi / 0.01], 1),
        (4, "key", 3, [sum(each**2 for each in row)], 0),
        (4, "key", 4, [3 / 2], 1),
        (4, "key", 4, [float(torch.exp(torch.tensor(-1.5)))], 3),
        (5, "key", 2, [int((causal > 0).sum())], 0),
        (5, "key", 5, [0.6 * 0.5 * 0.9], 2),
        (6, "key", 3, [0.1 * 5], 1),
        (6, "key", 3, [0.9 * 0.1], 2),
    ]


@pytest.mark.parametrize("language", LANGUAGES)
def test_keys_hold_what_is_computed(language: str) -> None:
    for number, section, item, values, places in computed()[1:]:
        text = course().items(lesson(language, number).sections[section])[item - 1]
        for value in values:
            assert re.search(rf"(?<![\d.,]){re.escape(written(value, language, places))}(?!\d)", text), (text, value)
    assert sum(p.numel() for p in MultiHeadAttention(64, 8).parameters()) == 4 * 64**2
    assert re.sub(r"\D", "", "16,384") in re.sub(r"[.,]", "", lesson(language, 3).sections["key"])
    assert max(abs(lookup("Lipten", key, 5.0) - 1 / 6) for key, _ in BOOK_DATABASE) < 0.02


@pytest.fixture(scope="module")
def packs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("course")
    course().build(folder, "https://atlas.school.example/")
    return folder


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_cartridge_is_valid_and_gives_no_answer_away(packs: Path, language: str) -> None:
    """A manifest that is XML and names every file once; every file it names is there."""
    with zipfile.ZipFile(packs / f"students-{language}.imscc") as archive:
        manifest = ElementTree.fromstring(archive.read("imsmanifest.xml"))
        space = "{http://www.imsglobal.org/xsd/imsccv1p1/imscp_v1p1}"
        assert manifest.findtext(f".//{space}schemaversion") == "1.1.0"
        resources = manifest.findall(f".//{space}resource")
        files = [each.attrib["href"] for each in manifest.iter(f"{space}file")]
        assert sorted([*files, "imsmanifest.xml"]) == sorted(archive.namelist())
        pages = [name for name in files if name.endswith(".html")]
        assert [each.attrib["href"] for each in resources if each.attrib["type"] == "webcontent"] == pages
        shown = [
            each.attrib["identifierref"] for each in manifest.iter(f"{space}item") if "identifierref" in each.attrib
        ]
        assert shown == [each.attrib["identifier"] for each in resources]
        texts = [archive.read(name).decode() for name in pages]
    heading = lesson(language, 1).headings["key"]
    assert len(texts) == 2 * len(LESSONS)
    assert not any(f">{heading}<" in text for text in texts)


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("number", LESSONS)
def test_a_vote_is_a_quiz_with_one_right_answer(packs: Path, language: str, number: int) -> None:
    """Elements of QTI 1.2.1 in the order of the cartridge's profile, whose schema all 18 were held against by hand."""
    vote = course().read_vote(lesson(language, number), language)
    with zipfile.ZipFile(packs / f"students-{language}.imscc") as archive:
        root = ElementTree.fromstring(archive.read(f"lesson-{number}-vote.xml"))
    space = "{http://www.imsglobal.org/xsd/ims_qtiasiv1p2}"
    item = root.find(f"{space}assessment/{space}section/{space}item")
    assert item is not None
    assert item.findtext(f"{space}presentation/{space}material/{space}mattext") == vote.question
    choices = {
        each.attrib["ident"]: each.findtext(f"{space}material/{space}mattext")
        for each in item.iter(f"{space}response_label")
    }
    assert list(choices.values()) == sorted([vote.right, *vote.wrong])
    right = item.find(f".//{space}varequal")
    assert right is not None
    assert choices[right.text or ""] == vote.right
    assert not re.search(r"[$\\*<>\[]|https?:", " ".join([vote.question, *map(str, choices.values())]))


def test_no_student_is_led_to_the_teachers_computer(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    address = "http://[::1]:8501"
    (tmp_path / "students-en.imscc").write_text("of before")
    course().build(tmp_path, address)
    assert list(tmp_path.glob("*.imscc")) == []
    assert (tmp_path / "teacher-en.zip").is_file()
    assert f"No cartridges were written: {address} is this computer" in capsys.readouterr().out


SITE = "https://atlas.school.example/site"


def test_links_lead_to_the_site_where_it_shows_the_same(tmp_path: Path) -> None:
    """Its pages are those that the app links to, by the same names; students get no link to the teacher's computer."""
    for chapter, (file, names) in course().STATIC_PAGES.items():
        known = {page["file"]: page["carried"] for page in static_pages(load_words(chapter, "en"))}
        assert names.items() <= {key: carried["name"] for key, carried in known[file].items()}.items()
    opened = course().static_address
    assert opened("walk?lang=pt-BR&w-model=translator") == "pt-BR/walk.html"
    assert opened("transformer?lang=en&t-text=He+is+calm.&t-without=cross-3.4") == (
        "en/transformer.html#text=He+is+calm.&off=cross.2.3"
    )
    assert opened("learning?lang=pt-BR") == "pt-BR/learning.html"
    assert opened("bahdanau?b-step=3") == "en/bahdanau.html#step=2"
    assert opened("transformer?t-break=no-mask") is None
    course().build(tmp_path, site=f"{SITE}/")
    for language in LANGUAGES:
        with zipfile.ZipFile(tmp_path / f"students-{language}.imscc") as archive:
            students = "".join(archive.read(name).decode() for name in archive.namelist())
        teachers = "".join(path.read_text("utf-8") for path in (tmp_path / language).glob("*.html"))
        assert "localhost" not in students
        assert students.count(f'href="{SITE}/{language}/') >= 8
        assert f'href="{course().ADDRESS}/learning?' in teachers
