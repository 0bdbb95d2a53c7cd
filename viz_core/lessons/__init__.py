"""Mathematics that only one chapter teaches, a module or folder each; nothing but its chapter imports it."""
