"""1 - alignment error rate of a cross-attention head for the word that a step writes, as measured for its model."""

from viz_core.maps.head_measure import Measure

MEASURE = Measure(
    name="written", unit="accuracy", order=8, applies=lambda info: not info.on_itself, maximum=lambda _: 1.0
)
