"""The register of scoring functions: every `ScoringFunction` of this package."""

from typing import Any

from viz_core.attention.scores.function import ScoringFunction
from viz_core.runtime.registry import find_entries

FUNCTIONS: tuple[ScoringFunction[Any], ...] = find_entries("viz_core.attention.scores", ScoringFunction)
"""Every scoring function, in the order of every list."""

BY_NAME = {function.name: function for function in FUNCTIONS}
"""Every scoring function by its name."""
