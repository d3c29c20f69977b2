"""The model folder in the Hugging Face layout."""
