"""1 - alignment error rate of a cross-attention head, as measured for its model: no map has it."""

from viz_core.maps.head_measure import Measure

WRITTEN = Measure(
    name="written", unit="accuracy", order=9, applies=lambda info: not info.on_itself, maximum=lambda _: 1.0
)
"""For the word that a step writes."""

READ = Measure(name="read", unit="accuracy", order=10, applies=lambda info: not info.on_itself, maximum=lambda _: 1.0)
"""For the word that a step has read."""
