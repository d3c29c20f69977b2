"""Quality of fine-tuned models beside those that transformers' Trainer makes of the same rows."""
