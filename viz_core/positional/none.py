"""No positions: attention that sees a set of tokens."""

from viz_core.positional.entry import SchemeCost, SchemeEntry

NONE = SchemeEntry(
    "none",
    order=0,
    formula=r"q_i \cdot k_j / \sqrt{d}",
    enters="nowhere",
    depends_on="nothing",
    extrapolates=True,
    cost=lambda _: SchemeCost(),
    task_name="none",
)
