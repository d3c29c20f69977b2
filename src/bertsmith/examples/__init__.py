"""What the model is shown: segments, sentence pairs, masks."""
