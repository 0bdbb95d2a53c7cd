"""The Transformer: type English, read French, open every head."""

import streamlit as st
from ui.attention_view import attention_view

from ui.chapter import Chapter
from ui.models import translation_maps, translator
from ui.transformer import causal_mask, inside_the_encoder, parameters, training
from ui.translation import ask_sentence, show_result, translate
from ui.words import current_language, load_words
from viz_core import claims
from viz_core.attention import MultiHeadAttention
from viz_core.figures.translation import aligning_head, open_map
from viz_core.models import TransformerDecoderBlock, TransformerEncoderBlock
from viz_core.trace import attend

MODEL = "transformer-en-fr"
ROUNDING = 1e-5  # what float32 may lose in sums of a few hundred terms

chapter = Chapter("transformer")
chapter.question()
request = ask_sentence(chapter)
result = translate(chapter, MODEL, request)
if result is None:
    st.stop()
show_result(chapter, request, result)

groups = translation_maps(MODEL, request.text, request.beam, current_language())
view = attention_view(
    groups, load_words("attention-view").sections, default=aligning_head(groups), key="maps", language=current_language()
)
chapter.look_for("maps")

model = translator(MODEL)
with chapter.claims():
    heads = sum(call.num_heads for call in result.trace)
    chapter.claim("rows", claims.row_sum_error(result.trace), ROUNDING, heads=heads)
    decoder = [call for call in result.trace if call.site.startswith("decoder") and call.kind == "self"]
    chapter.claim("future", max(claims.future_weight(call) for call in decoder), 0.0)
    chapter.claim("leak", claims.future_leak(model, result, len(result.target_ids) - 1), ROUNDING)
    chapter.claim("cache", claims.cache_error(model, result), 1e-4)

inside, mask, trained, counted = chapter.tabs("inside", "mask", "training", "parameters")
with inside:
    if inside.open:
        inside_the_encoder(chapter, model, result)
with mask:
    if mask.open:
        causal_mask(chapter, result, view)
with trained:
    if trained.open:
        training(chapter, model)
with counted:
    if counted.open:
        parameters(chapter, model)

chapter.exercise("swap")
chapter.code(attend, MultiHeadAttention, TransformerEncoderBlock, TransformerDecoderBlock)
chapter.downloads(weights=open_map(groups, view).numpy())
