"""Linear attention: one layer as a matrix and as a state, what each rule forgets, and how much a state holds."""

from functools import partial

from pages.linear_attention.costs import costs
from pages.linear_attention.decay import decay
from pages.linear_attention.layer import choose_layer, main_figure
from pages.linear_attention.models import models
from pages.linear_attention.recall import recall
from pages.linear_attention.replace import replace
from ui.chapter.chapter import Chapter
from viz_core.attention.linear import LinearOperator, elu_features, gated_delta_rule, linear_attention, retention
from viz_core.lessons.linear_attention.forms import all_forms, head_cost
from viz_core.lessons.linear_attention.model_layers import model_layers
from viz_core.lessons.linear_attention.recall import RecallLayer

chapter = Chapter("linear-attention")
chapter.question()
chapter.definition()
with chapter.card("main"):
    with chapter.main_controls():
        layer, broken = choose_layer(chapter)
    chapter.side_by_side(broken, partial(main_figure, chapter, layer, bool(broken)))

chapter.exercise("twice")
chapter.takeaways()
chapter.next()


def code() -> None:
    """Draw source code and downloads."""
    chapter.code(
        LinearOperator,
        elu_features,
        linear_attention,
        retention,
        gated_delta_rule,
        all_forms,
        head_cost,
        RecallLayer,
        model_layers,
    )
    forms = layer.forms()
    chapter.downloads(
        {"map": forms.map.numpy(), "state": forms.states[layer.time].numpy(), "output": forms.outputs.numpy()}
    )


chapter.deeper(
    {
        "cost": lambda: costs(chapter),
        "decay": lambda: decay(chapter),
        "replace": lambda: replace(chapter, layer),
        "recall": lambda: recall(chapter),
        "models": lambda: models(chapter),
        "code": code,
    }
)
