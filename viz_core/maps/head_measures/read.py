"""1 - alignment error rate of a cross-attention head for the word that a step has read, as measured for its model."""

from viz_core.maps.head_measure import Measure

MEASURE = Measure(name="read", unit="accuracy", order=9, applies=lambda info: not info.on_itself, maximum=lambda _: 1.0)
