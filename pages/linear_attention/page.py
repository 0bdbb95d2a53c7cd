"""Linear attention: one layer as a matrix and as a state, what each rule forgets, and how much a state holds."""

from functools import partial

from pages.linear_attention.parts import (
    ANSWERS,
    choose_layer,
    costs,
    decay,
    erase_and_write,
    main_figure,
    models,
    recall,
)
from ui.chapter.chapter import Chapter
from viz_core.attention.linear import LinearOperator, elu_features, gated_delta_rule, linear_attention, retention
from viz_core.lessons.linear_attention import RecallLayer, all_forms, head_cost, model_layers

chapter = Chapter("linear-attention")
chapter.question()
chapter.definition()
with chapter.card("main", has_question=True):
    with chapter.main_controls():
        layer, broken = choose_layer(chapter)
    chapter.side_by_side(broken, partial(main_figure, chapter, layer, bool(broken)))

chapter.exercise("twice", marks=ANSWERS)
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
        "replace": lambda: erase_and_write(chapter, layer),
        "recall": lambda: recall(chapter),
        "models": lambda: models(chapter),
        "code": code,
    }
)
