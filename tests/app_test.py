"""What speeds up Streamlit's AppTest; import it before a test runs an app."""

import functools
from typing import Any
from unittest.mock import MagicMock

from streamlit.components.v2 import manifest_scanner
from streamlit.testing.v1 import app_test, local_script_runner

# AppTest searches all installed packages for components at every run of a page, a third of the time of a page's test.
# None is installed while tests run.
manifest_scanner.scan_component_manifests = functools.cache(manifest_scanner.scan_component_manifests)

# It also compiles the scripts of a page at every run; a server does so once.
app_test.ScriptCache = local_script_runner.ScriptCache = functools.cache(app_test.ScriptCache)


def _runtime(**spec: Any) -> MagicMock:
    """The runtime that AppTest makes; no browser is there, whose cookies a page reads with every text."""
    runtime = MagicMock(**spec)
    runtime.get_client.return_value = None
    return runtime


app_test.MagicMock = _runtime


def _join(runner: local_script_runner.LocalScriptRunner, timeout: float = 3) -> None:
    """Wait for the end of a run without looking a thousand times a second whether it has come."""
    assert runner._script_thread is not None
    runner._script_thread.join(timeout)
    _require(runner, timeout)


_require = local_script_runner.require_widgets_deltas
local_script_runner.require_widgets_deltas = _join
