"""A pytest plugin that proves that the library's tests need no app: `make test-library`.

Importing the app, the training programs or what only they need is an ImportError.
"""

import sys

for name in ("streamlit", "playwright", "plotly", "ui", "pages", "serving", "recipes", "tests.attacks"):
    sys.modules[name] = None  # type: ignore[assignment]
