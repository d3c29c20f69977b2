"""Exporting a model: what is exported, the texts that an int8 model needs, and how it is judged."""
