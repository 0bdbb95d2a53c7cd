"""Transformers for vision: a real ViT on any picture, every head over it."""

import streamlit as st

from pages.vision_transformer import looks, parts
from pages.vision_transformer.inputs import ask
from ui.chapter import Chapter
from ui.pictures import picture_look, picture_maps
from ui.words import current_language
from viz_core.maps.distance import mean_attention_distance
from viz_core.maps.relevance import gradient_relevance
from viz_core.maps.rollout import attention_rollout
from viz_core.models.vit import PatchEmbedding, ViT, ViTBlock
from viz_core.view.picture import first_look
from viz_core.view.translation import open_map

chapter = Chapter("vision-transformer")
chapter.question()
asked = ask(chapter)
if asked is None:
    st.stop()
parts.seen_and_said(chapter, asked)

groups = picture_maps(asked.model, asked.picture, current_language())
view = chapter.attention_view(groups, first_look(groups))
token = parts.token_read(view)

with chapter.claims():
    heads = sum(call.num_heads for call in asked.found.trace)
    chapter.claim("rows", picture_look(asked.model, asked.picture, "row-error"), parts.ROUNDING, heads=heads)

chapter.heading("further")
chapter.tabs(
    lab=lambda: parts.patch_lab(chapter, asked, view, token),
    depth=lambda: parts.depth(chapter, asked, token),
    patches=lambda: parts.patches(chapter, asked, token),
    heads=lambda: looks.heads(chapter, asked, view),
    positions=lambda: looks.positions(chapter, asked, token),
    order=lambda: looks.permutation(chapter, asked),
    training=lambda: looks.training(chapter, asked),
)

chapter.exercise("bag")
chapter.code(PatchEmbedding, ViTBlock, ViT, attention_rollout, gradient_relevance, mean_attention_distance)
chapter.downloads(
    weights=lambda: open_map(groups, view).numpy(),
    token_attention=picture_look(asked.model, asked.picture, "token-attention", token).numpy(),
)
