"""The least Streamlit app that shows a sinusoidal table as a plotly heatmap, float32: what most people would write."""

import plotly.graph_objects as go
import streamlit as st

from viz_core.positional import sinusoidal_table

d = st.slider("Dimensions d", 2, 512, 32, key="se-d", bind="query-params")
n = st.slider("Positions n", 1, 2000, 60, key="se-n", bind="query-params")
st.plotly_chart(go.Figure(go.Heatmap(z=sinusoidal_table(n, d).numpy())))
