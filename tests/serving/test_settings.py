"""Settings from the environment, documented in docs/settings.md."""

import os
import re

import pytest

from serving.public_settings import hosted_settings, unknown_settings, validated_settings
from serving.settings import Settings, bounds, settings, table
from tests.source_files import ROOT


@pytest.fixture(autouse=True)
def bare(monkeypatch: pytest.MonkeyPatch) -> None:
    """No setting from outside the test."""
    for name in [name for name in os.environ if name.startswith("ATLAS_")]:
        monkeypatch.delenv(name)


@pytest.mark.parametrize(("name", "value"), [("ATLAS_HOSTED", "1"), ("ATLAS_MODELS", "bert")])
def test_at_home_anything_goes_and_strangers_have_limits(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    at_home = settings()
    assert not at_home.restricted
    assert (at_home.max_tokens, at_home.max_characters, at_home.model_memory) == (None, None, None)
    assert (at_home.picture_limits, at_home.sound_limits) == ((10 * 2**20, 40_000_000), (10 * 2**20, 30))
    monkeypatch.setenv(name, value)
    hosted = settings()
    assert hosted.restricted
    assert (hosted.max_tokens, hosted.max_characters) == (2048, 20_000)
    monkeypatch.setenv("ATLAS_MAX_TOKENS", "99")
    assert settings().max_tokens == 99


NUMBERS = [
    name
    for name, field in Settings.model_fields.items()
    if str(field.annotation) in {"<class 'int'>", "<class 'float'>", "int | None"}
]


@pytest.mark.attack("settings")
@pytest.mark.parametrize("value", [None, "", " ", "1", "YES", "0", "off", "maybe"])
def test_a_public_server_is_hosted_or_does_not_start(monkeypatch: pytest.MonkeyPatch, value: str | None) -> None:
    monkeypatch.setenv("ATLAS_HOSTED", value or "")  # given back after the test
    if value is None:
        monkeypatch.delenv("ATLAS_HOSTED")
    if value in (None, "", " ", "1", "YES"):
        assert hosted_settings().hosted
    else:
        with pytest.raises(SystemExit, match="^ATLAS_HOSTED: "):
            hosted_settings()


@pytest.mark.attack("settings")
@pytest.mark.parametrize(
    ("name", "value", "others"),
    [
        ("ATLAS_WORKERS", "100000", {}),
        ("ATLAS_THREADS", "9999999999", {}),
        ("ATLAS_METRICS", "0.0.0.0:99999", {}),
        ("ATLAS_METRICS", "0.0.0.0:0", {}),
        ("ATLAS_MODEL_FOLDERS", "/", {}),
        ("ATLAS_MODEL_FOLDERS", "/usr/..", {}),
        ("ATLAS_RUNNER", "elsewhere", {}),
        ("ATLAS_FRAME_ANCESTORS", "*", {}),
        ("ATLAS_FRAME_ANCESTORS", "https://a.example https:", {}),
        ("ATLAS_FRAME_ANCESTORS", "https://*", {}),
        ("ATLAS_FRAME_ANCESTORS", "http://*:*", {}),
        ("ATLAS_FRAME_ANCESTORS", "https://*.com", {}),
        ("ATLAS_DEVICE", "banana", {}),
        ("ATLAS_MAX_SECONDS", "0.001", {}),
        ("ATLAS_WAIT_SECONDS", "0.5", {}),
        ("ATLAS_MAX_WINDOWS", "60", {"ATLAS_MAX_VISITORS": "50"}),
        ("ATLAS_SESSION_MB", "1", {}),
        ("ATLAS_ADDRESS_UPLOADS_MB", "600", {}),
        ("ATLAS_MODEL_FOLDERS", "/nowhere/at/all", {}),
        ("ATLAS_MODEL_FOLDERS", "/proc/self", {}),
        ("ATLAS_METRICS", "0.0.0.0:8501", {}),
    ],
)
def test_what_takes_a_limit_away_or_contradicts_another_is_refused_by_name(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str, others: dict[str, str]
) -> None:
    for each, given in {name: value, "ATLAS_HOSTED": "1", **others}.items():
        monkeypatch.setenv(each, given)
    with pytest.raises(SystemExit, match=f"^{name}: "):
        hosted_settings(8501)


def test_fewer_visitors_need_no_other_setting_and_protection_stays_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ATLAS_HOSTED", "1")
    monkeypatch.setenv("ATLAS_MAX_VISITORS", "50")
    assert hosted_settings(8501).max_visitors == 50
    with pytest.raises(SystemExit, match=r"^server\.enableXsrfProtection: "):
        hosted_settings(8501, protects_uploads=False)


def test_a_misspelt_setting_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ATLAS_MAX_VISITOR", "5")
    assert unknown_settings() == ("ATLAS_MAX_VISITOR",)


def test_all_that_is_wrong_is_named_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ATLAS_SLOTS", "many")
    monkeypatch.setenv("ATLAS_METRICS", "9501")
    monkeypatch.setenv("ATLAS_FRAME_ANCESTORS", "*; script-src *")
    with pytest.raises(SystemExit) as ended:
        validated_settings()
    lines = str(ended.value).splitlines()
    assert [line.partition(":")[0] for line in lines] == ["ATLAS_SLOTS", "ATLAS_FRAME_ANCESTORS", "ATLAS_METRICS"]


@pytest.mark.attack("settings")
@pytest.mark.parametrize("name", NUMBERS)
def test_every_number_has_both_bounds_and_they_are_documented(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """A value beyond them is refused by the name of its variable."""
    found = re.fullmatch(r"(above )?([\d,.]+) to ([\d,]+)", bounds(name))
    assert found
    low, high = float(found[2].replace(",", "")), float(found[3].replace(",", ""))
    for value in (f"{low if found[1] else low - 1:.0f}", f"{high + 1:.0f}", "nan", "1; rm -rf /"):
        monkeypatch.setenv(f"ATLAS_{name.upper()}", value)
        with pytest.raises(SystemExit, match=f"ATLAS_{name.upper()}: "):
            validated_settings()
    monkeypatch.setenv(f"ATLAS_{name.upper()}", f"{high:.0f}")
    assert getattr(validated_settings(), name) == high


def test_the_documentation_lists_every_setting() -> None:
    document = (ROOT / "docs" / "settings.md").read_text(encoding="utf-8")
    found = re.search(r"<!-- settings:.*?-->\n(.*?)\n<!-- end of settings -->", document, flags=re.DOTALL)
    assert found is not None
    assert found[1] == table()


def test_nothing_else_is_asked_of_the_environment() -> None:
    """Every ATLAS_ variable that the code names is a setting."""
    known = {f"ATLAS_{name.upper()}" for name in Settings.model_fields}
    files = [path for folder in ("viz_core", "ui", "pages", "serving") for path in (ROOT / folder).rglob("*.py")]
    named = {name for path in files for name in re.findall(r"\bATLAS_[A-Z_]+[A-Z]\b", path.read_text(encoding="utf-8"))}
    assert named
    assert named <= known
