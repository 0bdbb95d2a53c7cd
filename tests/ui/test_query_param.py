"""A choice in the address: by a name of no language, by a label of any; whoever acted last decides."""

import json
from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

import ui.text.words
import ui.widgets.controls  # its components take their words from the real files, before the test brings its own
import ui.widgets.query_param

PAGE = """
import json
import streamlit as st
from ui.widgets.controls import Controls
from ui.text.words import load_words
controls = Controls(load_words("two-words"))
options = ("gaussian", "boxcar", "constant")
found = {
    "kernel": controls.choice("kernel", options, "gaussian"),
    "list": controls.select("list", options, "boxcar"),
    "width": controls.select_slider("width", (1, 2, 4), 2),
    "some": controls.multiselect("some", options, ["constant"], 2),
    "tab": [name for name, tab in zip(("near", "far"), controls.tabs(("near", "far"))) if tab.open],
}
st.text(json.dumps(found))
"""


@pytest.fixture(autouse=True)
def two_languages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    labels = "".join(f"  {name}: {name}\n" for name in ("kernel", "list", "width", "some", "section"))
    common = "## fallback\n{label}: {asked} is none; {shown}\n\n## choose\nChoose\n"
    for language, texts in (
        ("en", ("The bell", "The box", "Near", "Far")),
        ("pt-BR", ("O sino", "A caixa", "Perto", "Longe")),
    ):
        options = zip(("gaussian", "boxcar", "near", "far"), texts, strict=True)
        sections = "\n".join(f"## option.{name}\n{text}\n" for name, text in options)
        files = {"two-words": f"---\ntitle: T\ncontrols:\n{labels}---\n{sections}", "common": common, "shared": ""}
        (tmp_path / language).mkdir()
        for name, text in files.items():
            (tmp_path / language / f"{name}.md").write_text(text, encoding="utf-8")
    monkeypatch.setattr(ui.text.words, "TEXT", tmp_path)


def opened(**query: str | list[str]) -> AppTest:
    app = AppTest.from_string(PAGE)
    for name, value in query.items():
        app.query_params[name.replace("_", "-")] = value
    return app.run()


def values(app: AppTest) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(app.text[0].value)
    return found


def test_defaults_leave_the_address_empty() -> None:
    app = opened()
    assert values(app) == {"kernel": "gaussian", "list": "boxcar", "width": 2, "some": ["constant"], "tab": ["near"]}
    assert not app.query_params


@pytest.mark.parametrize(
    ("boxcar", "far"), [("boxcar", "far"), ("The box", "Far"), ("A caixa", "Longe"), ("BOXCAR", "FAR")]
)
def test_a_name_or_what_any_language_calls_it(boxcar: str, far: str) -> None:
    app = opened(tw_kernel=boxcar, tw_list="gaussian", tw_width="4", tw_some=[boxcar, "constant"], tw_section=far)
    some = ["boxcar", "constant"]
    assert values(app) == {"kernel": "boxcar", "list": "gaussian", "width": 4, "some": some, "tab": ["far"]}
    assert app.query_params["tw-kernel"] == "boxcar"
    assert app.query_params["tw-some"] == ["boxcar", "constant"]
    assert app.query_params["tw-section"] == "far"
    assert not app.caption


def test_a_reader_moves_it_and_the_address_follows() -> None:
    app = opened()
    app.segmented_control(key="tw-kernel").set_value("boxcar")
    app.select_slider(key="tw-width").set_value(4)
    app.multiselect(key="tw-some").set_value([])
    app.run()
    assert {"kernel": "boxcar", "width": 4, "some": []}.items() <= values(app).items()
    params = {name: app.query_params[name] for name in app.query_params}
    assert params == {"tw-kernel": "boxcar", "tw-width": "4", "tw-some": ""}
    app.segmented_control(key="tw-kernel").set_value("gaussian")
    app.run()
    assert "tw-kernel" not in app.query_params
    assert values(app)["some"] == [], "what was left alone stays"


def test_the_address_moves_it_and_a_reader_at_once_wins() -> None:
    app = opened(tw_kernel="boxcar")
    app.query_params["tw-kernel"] = "constant"
    assert values(app.run())["kernel"] == "constant"
    del app.query_params["tw-kernel"]
    assert values(app.run())["kernel"] == "gaussian"
    app.segmented_control(key="tw-kernel").set_value("boxcar")
    app.query_params["tw-kernel"] = "constant"  # an address from before the click
    assert values(app.run())["kernel"] == "boxcar"
    assert app.query_params["tw-kernel"] == "boxcar"


def test_a_browser_that_has_not_heard_of_the_new_address_undoes_nothing() -> None:
    app = opened()
    app.segmented_control(key="tw-kernel").set_value("boxcar").run()
    del app.query_params["tw-kernel"]  # another control speaks before the browser shows what was written
    app.select_slider(key="tw-width").set_value(4).run()
    assert values(app)["kernel"] == "boxcar"
    assert app.query_params["tw-kernel"] == "boxcar"
    app.run()  # now it has heard
    del app.query_params["tw-kernel"]
    assert values(app.run())["kernel"] == "gaussian"


def test_who_goes_back_means_the_address_whatever_the_browser_still_says(monkeypatch: pytest.MonkeyPatch) -> None:
    app = opened()
    app.multiselect(key="tw-some").set_value(["boxcar"]).run()
    del app.query_params["tw-some"]  # as before the address was written
    monkeypatch.setattr(ui.widgets.query_param, "is_history_navigation", lambda: True)
    app.multiselect(key="tw-some").set_value(["gaussian"])
    assert values(app.run())["some"] == ["constant"]
    assert not app.query_params


@pytest.mark.parametrize("query", ["nothing", "", "\x00", "['boxcar']", "x" * 5000])
def test_what_is_no_option_is_told_once_and_forgotten(query: str) -> None:
    app = opened(tw_kernel=query, tw_section=query, tw_some=["boxcar", "gaussian", "constant"])
    assert (values(app)["kernel"], values(app)["some"], values(app)["tab"]) == ("gaussian", ["constant"], ["near"])
    assert [caption.value.split(":")[0] for caption in app.caption] == ["kernel", "some"]
    assert not app.query_params
    assert not app.run().caption


def test_a_choice_whose_label_changes_stays() -> None:
    app = AppTest.from_string(
        PAGE.replace('load_words("two-words")', 'load_words("two-words", st.session_state.get("in"))')
    )
    app.run()
    app.selectbox(key="tw-list").set_value("constant").run()
    app.session_state["in"] = "pt-BR"
    assert values(app.run())["list"] == "constant"
    app.session_state["in"] = "en"
    app.selectbox(key="tw-list").set_value("boxcar").run()
    app.session_state["in"] = "pt-BR"
    assert values(app.run())["list"] == "boxcar", "and not the first of all"


FOLLOWING = """
import streamlit as st
from ui.widgets.controls import Controls
from ui.text.words import load_words
controls = Controls(load_words("two-words"))
options = ("gaussian", "boxcar", "constant")
st.text(controls.select("list", options, st.select_slider("from", options, key="from")))
largest = st.slider("largest", 3, 9, 9, key="largest")
controls.clamp("width", largest)
st.text(controls.slider("width", 1, largest, 2))
"""


def test_a_default_that_moves_is_followed_until_somebody_chooses_and_a_number_stays_below_its_limit() -> None:
    app = AppTest.from_string(FOLLOWING).run()
    app.select_slider(key="from").set_value("boxcar").run()
    assert app.text[0].value == "boxcar"
    app.selectbox(key="tw-list").set_value("gaussian").run()
    app.select_slider(key="from").set_value("constant").run()
    assert app.text[0].value == "gaussian"
    assert app.query_params["tw-list"] == "gaussian"
    app.slider(key="tw-width").set_value(6).run()
    app.slider(key="largest").set_value(5).run()
    assert app.text[1].value == "5"
    assert not app.exception
