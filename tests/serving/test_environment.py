"""Settings and options, a home that can be read, cores and memory of a container, and logs without texts."""

import io
import json
import logging
import os
import re
import tomllib
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest
from streamlit import config

from serving.environment import NONE, profile, replace_unusable_home, usable_cores, usable_memory
from serving.logs import configure_logging, log, where
from serving.public_settings import hosted_settings, unknown_settings, validated_settings
from serving.settings import MAX_WORKERS, Settings, affordable_workers, bounds, settings, table
from tests.source_files import ROOT


@pytest.mark.parametrize("home", ["/dev/null/below", "/" + "x" * 5000, "unreadable secrets", "", "nonsense"])
def test_a_home_that_cannot_be_is_left_and_one_without_secrets_stays(
    home: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "owner" / ".streamlit" / "secrets.toml").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(tmp_path / "owner") if home == "unreadable secrets" else home)
    replace_unusable_home()
    stays = home in ("", "nonsense")
    assert os.environ["HOME"] == (home if stays else NONE)
    assert ("HOME: expected a readable folder" in caplog.text) is not stays


def test_strangers_see_no_details_and_send_little() -> None:
    """With app.py, which a platform starts by itself, config.toml alone is read."""
    options = profile({})
    assert options
    assert set(options) <= set(config._config_options_template)
    wanted = {"client.showErrorDetails": "none", "client.toolbarMode": "viewer", "server.fileWatcherType": "none"}
    wanted |= {"server.enableXsrfProtection": True, "server.enableCORS": True}
    assert {name: options[name] for name in wanted} == wanted
    assert options["server.maxUploadSize"] <= 10
    assert options["server.maxMessageSize"] <= 20
    alone = tomllib.loads((ROOT / ".streamlit" / "config.toml").read_text(encoding="utf-8"))
    assert alone["client"]["showErrorDetails"] == "none"
    assert alone["server"]["maxUploadSize"] <= 10
    assert alone["server"]["fileWatcherType"] == "none"


@pytest.mark.attack("settings")
@pytest.mark.parametrize(
    ("name", "value", "needed"),
    [
        ("server.port", "many", "a whole number"),
        ("server.headless", "1", "true or false"),
        ("client.width", "nine", "a number"),
        ("server.headless", "False", ""),
        ("client.width", "3", ""),
    ],
)
def test_what_streamlit_cannot_take_is_refused_at_the_start_by_name(name: str, value: str, needed: str) -> None:
    kinds = {"server.port": int, "server.headless": bool, "client.width": float, "x.path": str}
    if needed:
        with pytest.raises(SystemExit, match=f"^STREAMLIT_IT: expected {needed}, got "):
            profile({name: "STREAMLIT_IT"}, {"STREAMLIT_IT": value}, kinds)
    else:
        assert profile({name: "STREAMLIT_IT"}, {"STREAMLIT_IT": value}, kinds)[name] == {"False": False, "3": 3}[value]
    assert profile({name: "STREAMLIT_IT"}, {"STREAMLIT_IT": ""}, kinds) == profile({}), "empty is as good as none"


GB = 2**30


@pytest.fixture(autouse=True)
def machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _process: set(range(8)), raising=False)
    sizes = {"SC_PAGE_SIZE": 4096, "SC_PHYS_PAGES": 64 * GB // 4096}
    monkeypatch.setattr(os, "sysconf", lambda name: sizes[name])


V1_QUOTA, V1_PERIOD = "cpu/cpu.cfs_quota_us", "cpu/cpu.cfs_period_us"


@pytest.mark.parametrize(
    ("files", "cores"),
    [
        ({}, 8),
        ({"cpu.max": "max 100000"}, 8),
        ({"cpu.max": "250000 100000"}, 2),
        ({"cpu.max": "?"}, 8),
        ({V1_QUOTA: "-1\n", V1_PERIOD: "100000\n"}, 8),
        ({V1_QUOTA: "300000\n", V1_PERIOD: "100000\n"}, 3),
    ],
)
def test_a_quota_counts(tmp_path: Path, files: dict[str, str], cores: int) -> None:
    (tmp_path / "cpu").mkdir()
    for name, content in files.items():
        (tmp_path / name).write_text(content)
    assert usable_cores(tmp_path) == cores


@pytest.mark.parametrize(
    ("limit", "memory"), [("max", 64 * GB), (str(4 * GB), 4 * GB), ("?", 64 * GB), (str(2**63 - 4096), 64 * GB)]
)
@pytest.mark.parametrize("name", ["memory.max", "memory/memory.limit_in_bytes"])
def test_a_limit_of_memory_counts(tmp_path: Path, name: str, limit: str, memory: int) -> None:
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text(limit + "\n")
    assert usable_memory(tmp_path) == memory


@pytest.mark.parametrize(("memory", "workers"), [(GB // 2, 1), (2 * GB, 1), (4 * GB, 4), (64 * GB, MAX_WORKERS)])
def test_workers_fit_into_the_memory(monkeypatch: pytest.MonkeyPatch, memory: int, workers: int) -> None:
    for module in ("settings", "public_settings"):
        monkeypatch.setattr(f"serving.{module}.usable_memory", lambda: memory)
    monkeypatch.setattr("serving.settings.usable_cores", lambda: 8)
    assert (affordable_workers(), Settings(hosted=True).workers, Settings().workers) == (workers, workers, 0)
    monkeypatch.setenv("ATLAS_HOSTED", "1")
    monkeypatch.setenv("ATLAS_WORKERS", "200")
    with pytest.raises(SystemExit, match="200 workers need about 141,024 MB"):
        hosted_settings()
    monkeypatch.setenv("ATLAS_WORKERS", "2")
    assert hosted_settings().workers == 2


SECRET = "my diagnosis is nobody's business"


@pytest.fixture
def stream() -> Iterator[io.StringIO]:
    """What is logged while the test runs; afterwards logs are as they were."""
    factory, root = logging.getLogRecordFactory(), logging.getLogger()
    before = [(handler, handler.formatter) for handler in root.handlers]
    written = io.StringIO()
    handler = logging.StreamHandler(written)
    root.addHandler(handler)
    configure_logging()
    yield written
    root.removeHandler(handler)
    for old, formatter in before:
        old.setFormatter(formatter)
    logging.setLogRecordFactory(factory)


def lines(stream: io.StringIO) -> list[dict[str, object]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def fail() -> None:
    raise ValueError(f"cannot read {SECRET}")


@pytest.mark.attack("logs")
def test_anyones_record_is_an_object_on_a_line_that_names_no_session(stream: io.StringIO) -> None:
    log.warning("ready", seconds=3.5)
    session = "00000000-0000-4000-8000-00000000beef"
    for message, value in (("port %d is\ntaken", 80), ("%d words", "many"), ("Session %s is connected!", session)):
        logging.getLogger("some.library").error(message, value)
    first, *others = lines(stream)
    assert (first["event"], first["seconds"], first["level"], first["logger"]) == ("ready", 3.5, "WARNING", "atlas")
    assert [line["event"] for line in others] == ["port 80 is\ntaken", "%d words", "Session (id) is connected!"]


@pytest.mark.attack("logs")
def test_an_error_is_logged_by_type_and_place_alone(stream: io.StringIO) -> None:
    try:
        fail()
    except ValueError as error:
        logging.getLogger("some.page").error("Uncaught app execution", exc_info=error)
        logging.getLogger("any").exception("it failed: %s", error)
        first, second = where(error).split(" < ")[1:3]
        assert int(first.split(":")[1]) < int(second.split(":")[1]), "the innermost place first"
    written = lines(stream)
    assert len(written) == 2
    assert SECRET not in stream.getvalue()
    for line in written:
        assert str(line["error"]).startswith("ValueError < tests/serving/test_environment.py:")


@pytest.mark.attack("logs")
def test_a_warning_is_logged_by_kind_and_place_alone(stream: io.StringIO) -> None:
    logging.setLogRecordFactory(logging.LogRecord)
    with warnings.catch_warnings(action="always"):
        configure_logging()
        warnings.warn(SECRET, RuntimeWarning, stacklevel=1)
    (line,) = lines(stream)
    assert (line["event"], line["category"]) == ("warning", "RuntimeWarning")
    assert str(line["place"]).startswith("tests/serving/test_environment.py:")
    assert SECRET not in stream.getvalue()


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
        ("ATLAS_METRICS", "0.0.0.0:99999", {}),
        ("ATLAS_MODEL_FOLDERS", "/", {}),
        ("ATLAS_MODEL_FOLDERS", "/nowhere/at/all", {}),
        ("ATLAS_RUNNER", "elsewhere", {}),
        ("ATLAS_FRAME_ANCESTORS", "*", {}),
        ("ATLAS_FRAME_ANCESTORS", "https://*.com", {}),
        ("ATLAS_FRAME_ANCESTORS", "https://*", {}),
        ("ATLAS_FRAME_ANCESTORS", "http://*:*", {}),
        ("ATLAS_FRAME_ANCESTORS", "https://a.example https:", {}),
        ("ATLAS_DEVICE", "banana", {}),
        ("ATLAS_MAX_SECONDS", "0.001", {}),
        ("ATLAS_MAX_WINDOWS", "60", {"ATLAS_MAX_VISITORS": "50"}),
        ("ATLAS_SESSION_MB", "1", {}),
        ("ATLAS_ADDRESS_UPLOADS_MB", "600", {}),
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
def test_every_number_has_both_bounds_and_a_value_beyond_is_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    kinds = {"<class 'int'>", "<class 'float'>", "int | None"}
    numbers = [name for name, field in Settings.model_fields.items() if str(field.annotation) in kinds]
    found = {name: re.fullmatch(r"(above )?([\d,.]+) to ([\d,]+)", bounds(name)) for name in numbers}
    assert [name for name in numbers if found[name] is None] == []
    for value in ("0", "nan", "1; rm -rf /"):
        monkeypatch.setenv("ATLAS_SLOTS", value)
        with pytest.raises(SystemExit, match="ATLAS_SLOTS: "):
            validated_settings()


def test_the_documentation_lists_every_setting() -> None:
    document = (ROOT / "docs" / "settings.md").read_text(encoding="utf-8")
    found = re.search(r"<!-- settings:.*?-->\n(.*?)\n<!-- end of settings -->", document, flags=re.DOTALL)
    assert found is not None
    assert found[1] == table()


def test_no_other_variable_is_read() -> None:
    """Every ATLAS_ variable that the code names is a setting."""
    known = {f"ATLAS_{name.upper()}" for name in Settings.model_fields}
    files = [path for folder in ("viz_core", "ui", "pages", "serving") for path in (ROOT / folder).rglob("*.py")]
    named = {name for path in files for name in re.findall(r"\bATLAS_[A-Z_]+[A-Z]\b", path.read_text(encoding="utf-8"))}
    assert named
    assert named <= known
