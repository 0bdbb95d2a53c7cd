"""The recurrent decoder with attention, step by step."""
