"""Training, loading, saving and running tokenizers, with offsets into the original text."""
