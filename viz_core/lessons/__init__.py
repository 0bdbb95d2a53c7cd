"""Mathematics that only one chapter teaches, a folder each; nothing but its chapter imports it."""
