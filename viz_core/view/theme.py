"""Colours and type of the view where no app gives it a theme: those of .streamlit/config.toml."""

LIGHT = """
  --st-font: system-ui, sans-serif, "PingFang TC", "Microsoft JhengHei", "Noto Sans CJK TC", "Noto Sans TC";
  --st-heading-font: Georgia, "DejaVu Serif", serif, "Songti TC", "Microsoft JhengHei",
    "Noto Serif CJK TC", "Noto Serif TC";
  --st-heading-font-size-2: 1.25rem; --st-heading-font-weight-2: 700;
  --st-base-radius: 0.6rem; --st-button-radius: 0.6rem;
  --st-text-color: #1d2125; --st-heading-color: #1d2125; --st-primary-color: #0b6e66;
  --st-background-color: #fbfaf7; --st-border-color: #dcd8cf; --st-chart-categorical-colors: #0072b2,#d55e00;
"""

DARK = """
  --st-text-color: #e7e5df; --st-heading-color: #e7e5df; --st-primary-color: #4fb8ac;
  --st-background-color: #14181a; --st-border-color: #353d41; --st-chart-categorical-colors: #56b4e9,#f08c42;
"""
