"""BERT, GPT and ELMo trained alike and measured."""
