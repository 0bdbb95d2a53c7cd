"""The form of the trial: a participant answers, and the browser saves a file; nothing is sent."""

from __future__ import annotations

import csv
import json
from pathlib import Path

from playwright.sync_api import Page, expect

from tests.source_files import ROOT

FORM = (ROOT / "docs" / "teach" / "trial" / "form.html").as_uri()


def test_answers_are_saved_and_nothing_is_sent(page: Page) -> None:
    requests: list[str] = []
    page.on("request", lambda request: requests.append(request.url))
    page.goto(f"{FORM}?lang=pt-BR&form=B&phase=pre&condition=explore")
    code = page.get_by_label("Seu código").input_value()
    questions = page.get_by_role("group")
    expect(questions).to_have_count(10)
    page.get_by_role("button", name="Salvar como JSON").click()
    expect(page.get_by_role("alert")).to_contain_text("1, 2, 3, 4, 5, 6, 7, 8, 9, 10")
    for question in questions.all():
        question.get_by_role("radio").nth(1).check()
    questions.last.get_by_label("Não sei").check()
    with page.expect_download() as download:
        page.get_by_role("button", name="Salvar como JSON").click()
    assert download.value.suggested_filename == f"{code}-pre.json"
    saved = json.loads(Path(download.value.path()).read_text("utf-8"))
    assert [*saved["answers"].values()] == [2] * 9 + [0]
    named = {"code": code, "form": "B", "phase": "pre", "condition": "explore", "language": "pt-BR"}
    assert saved.items() >= named.items()
    assert set(saved) == {*named, "seconds", "answers"}
    with page.expect_download() as download:
        page.get_by_role("button", name="Salvar como CSV").click()
    (row,) = csv.DictReader(Path(download.value.path()).read_text("utf-8").splitlines())
    assert [row["code"], row["weighted-sum"], row["effect"]] == [code, "2", "0"]
    assert [url for url in requests if not url.startswith(("file:", "blob:"))] == []


def test_later_the_code_is_typed_and_an_incomplete_address_says_so(page: Page) -> None:
    page.goto(f"{FORM}?lang=zh-TW&form=A&phase=post&condition=read")
    code = page.get_by_label("您的代碼")
    expect(code).to_be_editable()
    page.get_by_role("button", name="JSON").click()
    expect(page.get_by_role("alert")).to_contain_text("您的代碼是六個字母")
    page.goto(f"{FORM}?form=X&phase=pre&condition=read")
    expect(page.get_by_role("alert")).to_contain_text("This address is incomplete")
    expect(page.get_by_role("button")).to_have_count(0)
