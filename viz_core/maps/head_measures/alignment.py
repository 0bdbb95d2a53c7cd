"""1 - alignment error rate of a cross-attention head, as measured for its model: no map has it."""

from viz_core.maps.head_measure import MapInfo, Measure


def _of_two_sequences(info: MapInfo) -> bool:
    return not info.on_itself


WRITTEN = Measure("written", "accuracy", 9, _of_two_sequences, lambda _: 1.0, names_heads=True)
"""For the word that a step writes."""

READ = Measure("read", "accuracy", 10, _of_two_sequences, lambda _: 1.0, names_heads=True)
"""For the word that a step has read."""
