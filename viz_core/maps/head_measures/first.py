"""Mean weight on the first key (`key_mass`); of a picture, where that is not a patch."""

from viz_core.maps.head_measure import Example, MapInfo, Measure

MEASURE = Measure(
    name="first",
    unit="share",
    order=4,
    applies=lambda info: info.patches is None or info.patches.num_special > 0,
    maximum=lambda _: 1.0,
    sums=lambda block: block.weights[..., 0].sum(dim=-1),
    example=Example(((1.0, 0.0, 0.0), (0.5, 0.25, 0.25)), 0.75, MapInfo(2, 3, on_itself=False)),
)
