"""Mean weight on keys that separate or end (`key_mass`)."""

from viz_core.maps.head_measure import Example, MapInfo, Measure

MEASURE = Measure(
    name="separator",
    unit="share",
    order=5,
    applies=lambda info: bool(info.separators),
    maximum=lambda _: 1.0,
    sums=lambda block: block.weights[..., list(block.info.separators)].sum(dim=(-2, -1)),
    example=Example(((0.25, 0.25, 0.5), (0.5, 0.5, 0.0)), 0.625, MapInfo(2, 3, on_itself=False, separators=(0, 2))),
)
