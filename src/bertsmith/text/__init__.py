"""Documents and sentences out of files."""
