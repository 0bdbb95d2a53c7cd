"""Transformers for vision: a real ViT on any picture, every head over it."""

import streamlit as st

from pages.vision_transformer.heads import heads
from pages.vision_transformer.inputs import ask_picture
from pages.vision_transformer.order import permutation, positions
from pages.vision_transformer.patches import patches
from pages.vision_transformer.places import ROUNDING, token_read
from pages.vision_transformer.prediction import seen_and_said
from pages.vision_transformer.token_maps import depth, patch_lab
from pages.vision_transformer.training import training
from ui.chapter import Chapter
from ui.models import ask, row_error
from ui.pictures import picture_maps
from ui.words import current_language
from viz_core.lessons.vision_transformer.questions import token_over_patches
from viz_core.maps.distance import mean_attention_distance
from viz_core.maps.relevance import gradient_relevance
from viz_core.maps.rollout import attention_rollout
from viz_core.models.vit import PatchEmbedding, ViT, ViTBlock, ViTMLP
from viz_core.view.picture import first_look
from viz_core.view.translation import open_map, open_tokens

chapter = Chapter("vision-transformer")
chapter.question()
asked = ask_picture(chapter)
if asked is None:
    st.stop()
seen_and_said(chapter, asked)

groups = picture_maps(asked.request, current_language())
view = chapter.attention_view(groups, first_look(groups), recipe=asked.request.recipe)
token = token_read(view)

with chapter.claims():
    count = sum(call.num_heads for call in asked.found.trace)
    chapter.claim("rows", lambda: row_error(groups), ROUNDING, heads=count)

chapter.heading("further")
chapter.tabs(
    lab=lambda: patch_lab(chapter, asked, view, token),
    depth=lambda: depth(chapter, asked, token),
    patches=lambda: patches(chapter, asked, token),
    heads=lambda: heads(chapter, asked, view),
    positions=lambda: positions(chapter, asked, token),
    order=lambda: permutation(chapter, asked),
    training=lambda: training(chapter, asked),
)

chapter.exercise("bag")
chapter.code(PatchEmbedding, ViTMLP, ViTBlock, ViT, attention_rollout, gradient_relevance, mean_attention_distance)
chapter.downloads(
    **open_tokens(groups, view),
    weights=lambda: open_map(groups, view).numpy(),
    token_attention=lambda: ask(asked.request, token_over_patches, token).numpy(),
)
