"""Where the files lie that come with the code: weights, words, samples, scripts and styles."""

from __future__ import annotations

from pathlib import Path

_LIBRARY = Path(__file__).resolve().parents[1]
_WITHIN = _LIBRARY / "assets"

ASSETS = _WITHIN if _WITHIN.is_dir() else _LIBRARY.parent / "assets"
"""A wheel carries them within the library; a checkout has them beside it."""
