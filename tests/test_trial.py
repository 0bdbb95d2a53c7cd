"""The trial in a box: items have one key and named distractors, forms are parallel, and the planned analysis runs."""

from __future__ import annotations

import json
import math
import re
import string
from collections import Counter
from pathlib import Path
from types import ModuleType

import nbformat
import pytest
import torch

from tests.notebooks import printed, run_notebook
from tests.source_files import ROOT, script
from viz_core.attention import MultiHeadAttention, masked_softmax
from viz_core.trace import record

TRIAL = ROOT / "docs" / "teach" / "trial"
LANGUAGES, FORMS = ("en", "pt-BR", "zh-TW"), ("A", "B", "C")


def trial() -> ModuleType:
    return script(TRIAL / "trial.py")


def test_there_are_thirty_items_in_three_parallel_forms() -> None:
    """The same ideas in the same order, with the same distractors; other numbers or words in each form."""
    forms = [trial().items(form) for form in FORMS]
    assert [len(form) for form in forms] == [10, 10, 10]
    for same in zip(*forms, strict=True):
        assert len({each.concept for each in same}) == 1
        assert len({frozenset(each.misconceptions) for each in same}) == 1
        assert len({each.question for each in same}) == 3


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("form", FORMS)
def test_an_item_has_one_key_and_distractors_that_name_misconceptions(form: str, language: str) -> None:
    named = trial().contents()["misconceptions"]
    for item, english in zip(trial().items(form, language), trial().items(form), strict=True):
        assert len(set(item.answers)) == len(item.answers) == 4
        assert item.misconceptions == english.misconceptions
        assert item.misconceptions.count(None) == 1
        assert {each for each in item.misconceptions if each} <= named.keys()
        assert not re.search(r"[{}]", item.question + "".join(item.answers))


def test_every_misconception_is_used_and_every_text_is_in_three_languages() -> None:
    used = {each for form in FORMS for item in trial().items(form) for each in item.misconceptions if each}
    assert used == trial().contents()["misconceptions"].keys()

    def texts(value: object) -> list[dict[str, object]]:
        if not isinstance(value, dict):
            return []
        return [value] if "en" in value else [each for inner in value.values() for each in texts(inner)]

    for text in texts(trial().contents()):
        assert set(text) == set(LANGUAGES)
        fields = [{name for _, name, _, _ in string.Formatter().parse(str(each)) if name} for each in text.values()]
        assert fields[0] == fields[1] == fields[2]


def test_the_place_of_the_key_gives_nothing_away() -> None:
    places = Counter(item.right for form in FORMS for item in trial().items(form))
    assert min(places[place] for place in range(4)) >= 5


def values(concept: str, form: str) -> dict[str, str]:
    return trial().contents()["concepts"][concept]["forms"][form]


def right(concept: str, form: str) -> str:
    (item,) = (each for each in trial().items(form) if each.concept == concept)
    return item.answers[item.right]


def fraction(text: str) -> float:
    above, _, below = text.partition("/")
    return float(above) / float(below or 1)


@pytest.mark.parametrize("form", FORMS)
def test_keys_and_distractors_are_what_is_computed(form: str) -> None:
    """Each key by the library or by its formula; each number of a distractor by its mistake."""
    v = {name: float(each) for name, each in values("weighted-sum", form).items()}
    assert float(right("weighted-sum", form)) == pytest.approx(v["w1"] * v["v1"] + v["w2"] * v["v2"])
    assert (v["mean"], v["sum"]) == ((v["v1"] + v["v2"]) / 2, v["v1"] + v["v2"])
    assert v["hard"] == v["v1" if v["w1"] > v["w2"] else "v2"]

    v = {name: float(each) for name, each in values("softmax", form).items()}
    weights = torch.softmax(torch.tensor([v["s1"], v["s2"]], dtype=torch.float64), 0)
    assert right("softmax", form) == f"{float(weights[0]):.2f}"
    assert v["linear"] == round(v["s1"] / (v["s1"] + v["s2"]), 2)

    text = values("mask", form)
    n, valid = int(text["n"]), int(text["valid"])
    masked = masked_softmax(torch.zeros(1, 1, n), torch.tensor([valid]))[0, 0].tolist()
    assert [fraction(each) for each in right("mask", form).split(", ")] == pytest.approx(masked)
    assert text["after"] == ", ".join([f"1/{n}"] * valid + ["0"] * (n - valid))
    assert text["zero"] == ", ".join([f"1/{n}"] * n)

    d = int(values("scaling", form)["d"])
    assert int(right("scaling", form)) == math.isqrt(d)
    assert math.isqrt(d) ** 2 == d
    assert int(values("scaling", form)["squared"]) == d**2

    text = values("heads", form)
    before, after = (MultiHeadAttention(int(text["d"]), int(text[each])) for each in ("before", "after"))
    counts = [sum(p.numel() for p in layer.parameters()) for layer in (before, after)]
    assert fraction(right("heads", form)) == counts[1] / counts[0]
    ratio = int(text["after"]) / int(text["before"])
    assert [fraction(text[each]) for each in ("add", "shrink", "scale")] == pytest.approx([ratio, 1 / ratio, ratio**2])

    size = {name: int(each) for name, each in values("cross-shape", form).items()}
    layer = MultiHeadAttention(8, 2)
    with record() as trace:
        target, source = torch.zeros(1, size["target"], 8), torch.zeros(1, size["source"], 8)
        layer(target, source, source, None)
    rows, columns = trace[0].weights().shape[-2:]
    assert right("cross-shape", form) == f"{rows} rows, {columns} columns"
    assert size["both"] == size["source"] + size["target"]

    size = {name: int(each) for name, each in values("causal", form).items()}
    assert int(right("causal", form)) == int(torch.ones(size["n"], size["n"]).tril().sum())
    assert size["strict"] == int(torch.ones(size["n"], size["n"]).tril(-1).sum())
    assert size["all"] == size["n"] ** 2

    v = {name: float(each) for name, each in values("contribution", form).items()}
    assert v["w1"] + v["w2"] == pytest.approx(1)
    assert v["w1"] > v["w2"]
    assert v["w2"] * v["l2"] > v["w1"] * v["l1"]
    assert right("contribution", form).startswith("Key 2")


def test_an_output_moves_with_its_word() -> None:
    """The key of "order": reversed, every word keeps its output."""
    torch.manual_seed(0)
    layer, X = MultiHeadAttention(8, 2).eval(), torch.randn(1, 3, 8)
    reverse = X.flip(1)
    torch.testing.assert_close(layer(X, X, X, None).flip(1), layer(reverse, reverse, reverse, None))


def test_the_form_is_that_of_the_items_has_no_key_and_loads_nothing() -> None:
    html = (TRIAL / "form.html").read_text("utf-8")
    assert html == trial().page(), "run python docs/teach/trial/trial.py"
    assert not [name for name in trial().contents()["misconceptions"] if name in html]
    assert not re.search(r"(src|href)=|https?:|fetch\(|XMLHttpRequest|sendBeacon|localStorage", html)
    assert "connect-src 'none'" in html


@pytest.mark.parametrize("language", LANGUAGES)
def test_links_to_the_form_say_language_form_phase_and_condition(language: str) -> None:
    text = (TRIAL / f"{language}.md").read_text("utf-8")
    found = re.findall(r"\(form\.html\?lang=([^&]+)&form=(.)&phase=(\w+)&condition=(\w+)\)", text)
    forms = (("A", "pre"), ("B", "post"))
    assert found == [(language, *form, condition) for condition in trial().CONDITIONS for form in forms]
    english = (TRIAL / "en.md").read_text("utf-8")
    links = [
        re.findall(r"localhost:8501/([^)]*)", each) for each in (text.replace(f"lang={language}", "lang=en"), english)
    ]
    assert links[0] == links[1]
    assert len(links[0]) == 8
    assert text.count("\n") == english.count("\n")
    assert [number in text for number in ("81%", "50%")] == [True, True]


def test_the_planned_analysis_runs_on_simulated_data_with_the_power_stated(tmp_path: Path) -> None:
    """About 81% at 100 per condition and a difference of 0.5, 50% at 50, and 5% where there is none."""
    book = nbformat.read(TRIAL / "analysis.ipynb", as_version=4)
    assert not any(cell.get("outputs") for cell in book.cells)
    check = "print(POWER[0.5, 100][0], POWER[0.5, 50][0], *(POWER[0.0, n][0] for n in (50, 100, 150)), p)"
    exported = """
import tempfile
folder = Path(tempfile.mkdtemp())
for one in records[:4]:
    (folder / f"{one['code']}-{one['phase']}.json").write_text(json.dumps(one))
row = {name: value for name, value in records[0].items() if name != "answers"} | records[0]["answers"]
(folder / "again.csv").write_text(",".join(map(str, row)) + "\\n" + ",".join(map(str, row.values())) + "\\n")
assert read_export(folder / "again.csv") == records[0]
assert len(pair([read_export(path) for path in folder.glob("*.json")])) == 2
assert pair(records[:1]) == []
try:
    pair([*records[:2], records[0]])
except ValueError as error:
    print(error)
"""
    outputs = run_notebook(book, TRIAL, check, exported)
    assert "no study has been run" in "".join(printed(each) for each in outputs)
    large, small, *alarms, p = map(float, printed(outputs[-2]).split())
    assert large == pytest.approx(0.81, abs=0.015)
    assert small == pytest.approx(0.50, abs=0.02)
    assert all(0.035 < each < 0.065 for each in alarms)
    assert 0 < p <= 1
    assert "two files of P00000 for the same phase" in printed(outputs[-1])


@pytest.mark.parametrize("language", LANGUAGES[1:])
def test_the_analysis_reads_alike_in_every_language(language: str) -> None:
    """The code is the same; each text and sentence is translated and has the numbers of the English one."""
    english, other = (nbformat.reads(trial().notebook(each), as_version=4) for each in ("en", language))
    nbformat.validate(other)
    assert english == nbformat.read(TRIAL / "analysis.ipynb", as_version=4)
    for one, two in zip(english.cells, other.cells, strict=True):
        if one.cell_type == "code":
            assert two.source == one.source.replace('LANGUAGE = "en"', f'LANGUAGE = "{language}"')
        else:
            assert two.source != one.source
            assert figures(two.source) == figures(one.source)
    assert [f'LANGUAGE = "{language}"' in cell.source for cell in other.cells].count(True) == 1
    words = json.loads((TRIAL / "analysis.json").read_text("utf-8"))["sentences"]
    for each in words.values():
        assert set(each) == set(LANGUAGES)
        assert fields_of(each[language]) == fields_of(each["en"])


def test_a_sentence_of_the_analysis_has_the_decimal_sign_of_its_language() -> None:
    values = {"name": "read", "n": 100, "before": 4.25, "after": 5.5}
    assert trial().sentence("group", "pt-BR", **values) == "read: 100 participantes, 4,25 antes, 5,50 depois"
    assert "5.50" in trial().sentence("group", "zh-TW", **values)


def fields_of(text: str) -> list[tuple[str, str | None]]:
    """The values that a sentence names, each with its format."""
    return sorted((name, form) for _, name, form, _ in string.Formatter().parse(text) if name)


def figures(text: str) -> list[str]:
    """The numbers of a text in English notation, in order of size."""
    return sorted(re.findall(r"\d+(?:\.\d+)?", re.sub(r"(?<=\d)(?:\{,\}|,)(?=\d)", ".", text)))


def test_a_form_that_is_none_is_refused() -> None:
    with pytest.raises(ValueError, match="forms are"):
        trial().items("D")


def test_the_page_answers_are_those_of_the_items() -> None:
    data = re.search(r"^const ITEMS = (\{.*?\n\});$", trial().page(), re.DOTALL | re.MULTILINE)
    assert data is not None
    shown = json.loads(data[1])
    for language in LANGUAGES:
        for form in FORMS:
            expected = [list(each.answers) for each in trial().items(form, language)]
            assert [each["answers"] for each in shown[language][form]] == expected
