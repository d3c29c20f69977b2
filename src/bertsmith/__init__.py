"""bertsmith: make, adapt and use BERT encoders on your own text, on the machine you have."""

__version__ = "0.1.0"
