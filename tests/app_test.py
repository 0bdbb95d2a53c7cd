"""What speeds up Streamlit's AppTest; import it before a test runs an app."""

from __future__ import annotations

import functools

from streamlit.components.v2 import manifest_scanner

# AppTest searches all installed packages for components at every run of a page, a third of the time of a page's test.
# None is installed while tests run.
manifest_scanner.scan_component_manifests = functools.cache(manifest_scanner.scan_component_manifests)
