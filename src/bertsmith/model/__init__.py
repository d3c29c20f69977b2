"""The encoder: config, presets, embeddings, attention, layers, heads, and the packed batch it takes."""
