"""Writing on from a prompt with a causal language model out of a folder."""

from pathlib import Path

from bertsmith.inference.generate import Generation, generate
from bertsmith.recipes.predict import open_model


def generate_run(
    folder: str | Path,
    prompt: str,
    *,
    max_new_tokens: int = 40,
    temperature: float = 1.0,
    top_k: int | None = None,
    seed: int = 0,
    device: str = "auto",
    precision: str = "fp32",
) -> Generation:
    """Write on from a prompt.

    Args:
        folder: the folder of a model trained with ``--objective causal``, or of its run.
        prompt: the beginning; may be empty.
        max_new_tokens: at most so many tokens are written.
        temperature: below 1 favours what is likely; 0 always takes the likeliest token.
        top_k: draw from the `top_k` likeliest tokens only.
        seed: decides the draws.
        device: where it runs.
        precision: ``auto``, ``fp32`` or ``bf16``.

    Raises:
        InputError: if the folder holds no causal model, or an argument breaks its rule.
    """
    model, tokenizer, chosen = open_model(folder, device=device, precision=precision)
    return generate(
        model,
        tokenizer,
        prompt,
        device=chosen,
        max_new_tokens=max_new_tokens,
        temperature=temperature,
        top_k=top_k,
        seed=seed,
    )
