"""The command that scans a model: a row for each head and measure, two sets compared, and an interrupted scan."""

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import recipes.scan
from recipes.scan import main, resumable_scan, side_by_side, table
from viz_core.hub import HubModel, load_hub
from viz_core.lab.scan import scan
from viz_core.pretrained.samples import held_out, scan_inputs, scan_picture

TEXTS = ["A cat sat on the mat, and the cat slept.", "No.", "He is calm, they said.", "I went home late.", "Why not?"]

pytestmark = pytest.mark.usefixtures("few_repeats")


@pytest.fixture(scope="module")
def model() -> HubModel:
    return load_hub("writer-en", device="cpu")


class StoppedError(Exception):
    """The process ends."""


@pytest.mark.parametrize("stop", [1, 5])
def test_an_interrupted_scan_goes_on_and_equals_an_uninterrupted_one(
    model: HubModel, tmp_path: Path, stop: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts, save = [*TEXTS, "", *TEXTS], tmp_path / "scan.jsonl"
    whole = scan(model, texts, batch=3, worth=2)
    assert [number for number, _ in whole.left_out] == [5]

    def stopped(*args: Any, progress: Any, **options: Any) -> Any:
        def count(lines: Sequence[Any], number: int) -> None:
            progress(lines, number)
            if len(lines) == stop:
                raise StoppedError

        return scan(*args, progress=count, **options)

    monkeypatch.setattr(recipes.scan, "scan", stopped)
    with pytest.raises(StoppedError):
        resumable_scan(model, texts, save, batch=3, worth=2)
    with save.open("a", encoding="utf-8") as stream:
        stream.write('{"half": ')  # the process ended while it wrote
    monkeypatch.setattr(recipes.scan, "scan", scan)
    found = resumable_scan(model, texts, save, batch=3, worth=2)
    assert (found.texts, found.tokens, found.alone) == (whole.texts, whole.tokens, whole.alone)
    for name, measured in whole.kinds["decoder-self"].measured.items():
        np.testing.assert_array_equal(found.kinds["decoder-self"].measured[name], measured, err_msg=name)
    np.testing.assert_array_equal(  # from the file alone
        resumable_scan(model, texts, save, batch=3, worth=2).kinds["decoder-self"].measured["worth"],
        whole.kinds["decoder-self"].measured["worth"],
    )
    for content in (save.read_text(encoding="utf-8"), ""):
        save.write_text(content, encoding="utf-8")
        with pytest.raises(ValueError, match="same model, texts and settings"):
            resumable_scan(model, texts[1:], save, batch=3)


def test_pictures_are_scanned_as_texts_are() -> None:
    model = load_hub("vit-fashion-mnist")
    pictures = [scan_picture(each) for each in scan_inputs("narrow", pictures=True)[:2]]
    np.testing.assert_array_equal(
        resumable_scan(model, pictures).kinds["encoder-self"].measured["entropy"],
        scan(model, pictures).kinds["encoder-self"].measured["entropy"],
    )


def test_narrow_and_broad_texts_stand_side_by_side(model: HubModel) -> None:
    narrow, broad = scan(model, TEXTS), scan(model, [sample.english for sample in held_out()[:8]])
    rows = list(side_by_side(narrow, broad))
    row = next(row for row in rows if (row["layer"], row["head"], row["measure"]) == (2, 3, "entropy"))
    assert row["difference"] == pytest.approx(row["against"] - row["texts"])
    assert row["low"] < row["difference"] < row["high"]
    rows = list(table(narrow))
    assert len({(row["layer"], row["head"]) for row in rows}) == 16
    assert {"mean", "low", "high", "chance", "texts", "p5", "p50", "p95", "p100"} < rows[0].keys()


def test_the_command_writes_a_row_for_each_head_and_measure(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    texts, out = tmp_path / "texts.txt", tmp_path / "heads.csv"
    texts.write_text("\n".join([*TEXTS, "", "word " * 600]) + "\n", encoding="utf-8")
    assert main(["writer-en", "--texts", str(texts), "--out", str(out)]) == 0
    rows = out.read_text(encoding="utf-8").splitlines()
    assert rows[0].startswith("maps,layer,head,measure,mean,low,high,chance,texts")
    assert len({row.split(",")[3] for row in rows[1:]}) * 16 == len(rows) - 1
    assert f"text 6 of {texts} was left out" in capsys.readouterr().err
    (against := tmp_path / "against.txt").write_bytes(texts.read_bytes())
    assert main(["writer-en", "--texts", str(texts), "--against", str(against), "--out", str(out)]) == 0
    assert f"text 6 of {against} was left out" in capsys.readouterr().err
    with out.open(encoding="utf-8") as stream:
        assert {float(row["difference"]) for row in csv.DictReader(stream)} == {0.0}
    assert main(["writer-en", "--texts", str(tmp_path / "none"), "--out", str(out)]) == 1
