"""A home that can be read, options that Streamlit knows, cores and memory of a container, and logs without texts."""

import io
import json
import logging
import os
import tomllib
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest
from streamlit import config

from serving import settings
from serving.environment import NONE, profile, replace_unusable_home, usable_cores, usable_memory
from serving.logs import configure_logging, log, where
from serving.public_settings import hosted_settings
from serving.settings import MAX_WORKERS, Settings, affordable_workers


@pytest.mark.parametrize(
    "home", ["/dev/null", "/dev/null/below", "/" + "x" * 5000, "unreadable secrets", "", "nonsense"]
)
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


DEVELOPMENT = Path(__file__).resolve().parents[2] / ".streamlit" / "config.toml"


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
    alone = tomllib.loads(DEVELOPMENT.read_text(encoding="utf-8"))
    assert alone["client"]["showErrorDetails"] == "none"
    assert alone["server"]["maxUploadSize"] <= 10
    assert alone["server"]["fileWatcherType"] == "none"


def test_the_environment_comes_first() -> None:
    environment = {
        "STREAMLIT_SERVER_PORT": "80",
        "STREAMLIT_SERVER_ADDRESS": "127.0.0.1",
        "STREAMLIT_SERVER_ENABLE_CORS": "false",
        "STREAMLIT_SERVER_COOKIE_SECRET": "hidden",
    }
    names = {"server.port": "PORT", "server.address": "ADDRESS", "server.enableCORS": "ENABLE_CORS"}
    variables = {name: f"STREAMLIT_SERVER_{variable}" for name, variable in names.items()}
    wanted = {"server.port": 80, "server.address": "127.0.0.1", "server.enableCORS": False}
    assert profile(variables, environment) == profile({}) | wanted


@pytest.mark.attack("settings")
@pytest.mark.parametrize(
    ("name", "value", "needed"),
    [
        ("server.port", "many", "a whole number"),
        ("server.port", "8501.5", "a whole number"),
        ("server.headless", "1", "true or false"),
        ("client.width", "nine", "a number"),
        ("server.headless", "False", ""),
        ("client.width", "3", ""),
        ("x.path", "3", ""),
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
        ({"cpu.max": "50000 100000"}, 1),
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
    ("limit", "memory"),
    [("max", 64 * GB), (str(4 * GB), 4 * GB), (str(2**50), 64 * GB), ("?", 64 * GB), (str(2**63 - 4096), 64 * GB)],
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
    monkeypatch.setattr(settings, "usable_cores", lambda: 8)
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


@pytest.mark.attack("logs")
def test_both_ends_of_a_long_record_are_logged(stream: io.StringIO) -> None:
    logging.getLogger("any").warning("a disallowed origin: %s: refused", "x" * 20_000)
    event = str(lines(stream)[0]["event"])
    assert len(event) < 700
    assert event.startswith("a disallowed origin: xxx")
    assert event.endswith("xxx: refused")
