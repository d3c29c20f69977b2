"""The model card: `README.md` of a model folder."""

from typing import Any

from bertsmith.folders.formats import published_class
from bertsmith.folders.offer import offer_of
from bertsmith.model.config import ModelConfig
from bertsmith.reports.model_names import model_tag, model_title


def model_card(
    config: ModelConfig, *, objective: str, max_length: int, mask_token: str | None, record: dict[str, Any]
) -> str:
    """What a stranger must know of a pre-trained model, as Markdown with the Hub's front matter.

    Args:
        config: the model.
        objective: what it was trained to do.
        max_length: tokens of a training sequence.
        mask_token: how the tokenizer writes a mask; None where it has none.
        record: what the run wrote down: sizes, versions, the last validation.
    """
    encoder, heads = config.encoder, config.heads
    metrics = record.get("metrics", {})
    kind = "elmo" if encoder.family == "elmo" else "gpt" if encoder.causal else "mlm"
    published = published_class(config) is not None
    offer = offer_of(config)
    lines = [
        "---",
        f"library_name: {offer.library}",
        f"pipeline_tag: {offer.pipeline}",
        f"tags: [{model_tag(config)}, bertsmith]",
        "---",
        "",
        f"# {model_title(config)}, pre-trained from raw text",
        "",
        f"{encoder.num_hidden_layers} layers, hidden size {encoder.hidden_size}, "
        f"{'' if kind == 'elmo' else f'{encoder.num_attention_heads} heads, '}"
        f"{encoder.vocab_size:,} pieces, sequences of at most {max_length} tokens. Objective: {objective}.",
        "",
        "| | |",
        "|---|---|",
        f"| training text | {record.get('train_tokens', 0):,} tokens "
        f"in {record.get('train_documents', 0):,} documents |",
        f"| trained on | {record['tokens']:,} tokens in {record['steps']:,} steps |",
        *(f"| {name} | {value:.4f} |" for name, value in metrics.items() if isinstance(value, float)),
    ]
    if (context_free := record.get("context_free_loss")) is not None:
        lines.append(f"| loss of guessing by frequency alone | {context_free:.4f} |")
    lines += ["", "## Use", "", "```python", *_usage(kind, published, mask_token), "```", ""]
    if kind == "elmo":
        lines += ["No class in transformers computes this model; its weights have bertsmith's own names.", ""]
    elif not published:
        lines += [
            f"Its head over the vocabulary (`{heads.mlm_head}`, reading `{heads.mlm_head_input}`) has no class in "
            "transformers. So `config.json` names the encoder alone, and the head lies in "
            "`bertsmith_heads.safetensors`, where bertsmith finds it.",
            "",
        ]
    lines += [
        "## Limits",
        "",
        "It knows the text it was trained on and nothing else, errors and prejudices of that text included.",
        "",
    ]
    return "\n".join(lines)


def _usage(kind: str, published: bool, mask_token: str | None) -> list[str]:
    if kind == "gpt":
        return ["import bertsmith", 'bertsmith.generate("PATH", "How a text begins")']
    if kind == "elmo":
        return [
            "import bertsmith",
            'bertsmith.finetune("classify", "train.csv", model="PATH", out="my-classifier")',
        ]
    text = f"A text with a {mask_token} in it."
    if published:
        return [
            "from transformers import pipeline",
            'fill = pipeline("fill-mask", model="PATH")',
            f'fill("{text}")',
        ]
    return ["import bertsmith", 'fill = bertsmith.load("PATH")', f'fill("{text}")']
