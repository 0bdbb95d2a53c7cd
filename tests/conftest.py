"""What all tests share. It imports the library alone: `make test-library` needs no app, browser or training program."""

import gc
import os
from collections.abc import Iterator
from pathlib import Path

import hypothesis
import pytest
import torch

from tests import shape_checks

# More than a million objects are imported and collected, and all of them stay: until they are frozen (below), looking
# for garbage would walk through them again and again.
gc.disable()

# While tests run, every function of the library, the walk and the chapters checks the shapes and types in its
# signature. An int counts as a float, as it does for mypy; a mismatch is a TypeError, like jaxtyping's own. This must
# come before the library's first import.
_CHECK = "beartype.beartype(conf=beartype.BeartypeConf(is_pep484_tower=True, violation_type=TypeError))"
shape_checks.install(("viz_core", "pages"), _CHECK)

from tests.tiny_models import TINY, write_tiny_translator  # noqa: E402
from viz_core.pretrained import Translator, load  # noqa: E402

# The tests' tensors are small: a second thread costs more than it brings, and sums keep their order on any machine.
torch.set_num_threads(1)
os.environ["ATLAS_THREADS"] = "1"
# A public server is one process, whose metrics are all there are, but for the tests of several.
os.environ["ATLAS_PROCESSES"] = "1"
# No test fails because the machine is busy: no time limit applies unless a test sets one.
os.environ["ATLAS_MAX_SECONDS"] = os.environ["ATLAS_WAIT_SECONDS"] = "1800"
# The same holds for hypothesis; in continuous integration it draws the same examples each time.
hypothesis.settings.register_profile(
    "atlas",
    deadline=None,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
    derandomize=bool(os.environ.get("CI")),
)
hypothesis.settings.load_profile("atlas")

# Long folders and files start first, so that none of them runs alone at the end.
_LONG = ("attacks", "browser", "serving", "pages", "recipes")

_TESTS = Path(__file__).parent
# What `make test` leaves to `make test-slow`: attacks, training programs, comparisons with other packages, exports of
# models, servers that are stopped or stand behind a proxy, and what a browser checks in every chapter and on every page
# of the site.
_SLOW = tuple(
    "attacks/ recipes/ test_deployment test_documentation "
    "test_packaging browser/chapters/ browser/test_static serving/http/test_proxy serving/process/test_processes "
    "static_site/test_build viz_core/hub/test_family "
    "viz_core/trace/test_compiled viz_core/trace/test_peer".split()
)
# A file that is renamed would quietly join `make test`, which has not installed what it needs.
assert all(any(_TESTS.glob(f"{start.rstrip('/')}*")) for start in _SLOW)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """With `-m slow` or without what is slow, import no file whose tests would all be left out."""
    runs = config.getoption("markexpr", "")
    if collection_path.suffix != ".py" or runs not in ("slow", "not slow") or _TESTS not in collection_path.parents:
        return None
    slow = collection_path.relative_to(_TESTS).as_posix().startswith(_SLOW)
    mixed = not slow and "mark.slow" in collection_path.read_text(encoding="utf-8")
    return True if slow != (runs == "slow") and not mixed else None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: not any(name in item.path.parts for name in _LONG))
    for item in items:
        if item.path.relative_to(_TESTS).as_posix().startswith(_SLOW):
            item.add_marker(pytest.mark.slow)
    if os.environ.get("CI"):
        # A server, a browser and a busy machine are involved: a failing test runs once more, and both are reported.
        for item in items:
            if "browser" in getattr(item, "fixturenames", ()):
                item.add_marker(pytest.mark.flaky(reruns=1))


def pytest_collection_finish() -> None:
    gc.collect()
    gc.freeze()
    # With Python's own threshold of 700 objects, tests by hypothesis search for garbage hundreds of times a second.
    gc.set_threshold(50_000, 10, 10)
    gc.enable()


@pytest.hookimpl(trylast=True)
def pytest_unconfigure(config: pytest.Config) -> None:
    """Say in the last line how many browser tests did not run, so that their absence is not taken for success."""
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    skipped = [] if reporter is None else reporter.stats.get("skipped", [])
    count = sum("no Chromium on this machine" in str(report.longrepr) for report in skipped)
    if count:
        reporter.write_line(f"{count} browser tests did not run: there is no Chromium.", red=True)


@pytest.fixture(autouse=True)
def seeded() -> None:
    """The same random numbers in every test, alone or among others.

    `torch.manual_seed` also formats a stack for each kind of accelerator, a millisecond per test.
    """
    torch.default_generator.manual_seed(0)
    if torch.cuda.is_available():
        torch.cuda.manual_seed_all(0)


@pytest.fixture
def shapes_unchecked() -> Iterator[None]:
    """Turn off the shape checks: they would refuse a wrong shape before the function's own check, or take long."""
    with shape_checks.unchecked():
        yield


@pytest.fixture
def few_repeats(monkeypatch: pytest.MonkeyPatch) -> None:
    """A scan reads two random sequences that repeat instead of 16, which takes most of a short scan's time."""
    monkeypatch.setattr("viz_core.lab.scan._SEQUENCES", 2)


@pytest.fixture(scope="session")
def checkpoints(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of checkpoints with one model in it: untrained, but in the shipped format to the last file."""
    folder = tmp_path_factory.mktemp("checkpoints")
    write_tiny_translator(folder)
    return folder


@pytest.fixture(scope="session")
def translator(checkpoints: Path) -> Translator:
    """The tiny model, loaded as visitors' requests load the real one."""
    return load(TINY, device="cpu", folder=checkpoints)
