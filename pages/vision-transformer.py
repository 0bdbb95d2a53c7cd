"""Transformers for vision: a real ViT on any picture, every head over it."""

import streamlit as st

from ui.attention_view import attention_view
from ui.chapter import Chapter
from ui.vision_inputs import ask
from ui.vision_models import picture_maps
from ui.words import current_language, load_words
from viz_core.claims import row_sum_error
from viz_core.figures.translation import open_map
from viz_core.figures.vision import first_look
from viz_core.models.vit import PatchEmbedding, ViT, ViTBlock

ROUNDING = 1e-5  # what float32 may lose in sums of a few hundred terms

chapter = Chapter("vision-transformer")
chapter.question()
asked = ask(chapter)
if asked is None:
    st.stop()

language = current_language()
groups = picture_maps(asked.name, asked.picture, language)
view = attention_view(
    groups, load_words("attention-view").sections, default=first_look(groups), key="maps", language=language
)
chapter.look_for("maps")

with chapter.claims():
    chapter.claim("rows", row_sum_error(asked.found.trace), ROUNDING)

chapter.code(PatchEmbedding, ViTBlock, ViT)
chapter.downloads(weights=open_map(groups, view).numpy())
