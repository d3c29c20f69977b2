"""Looking at the attention of a model in a folder."""

from collections.abc import Callable
from pathlib import Path

from bertsmith.inference.attention import MAX_TOKENS, AttentionMap, AttentionViewer, chosen_heads
from bertsmith.pictures.attention import draw_attention, refuse_undrawable
from bertsmith.recipes.predict import open_model


def attention_run(
    folder: str | Path, text: str, pair: str | None = None, *, max_tokens: int = MAX_TOKENS, device: str = "auto"
) -> AttentionMap:
    """Who looks at whom in a text or a pair, in every layer and head of a model.

    Args:
        folder: a model folder or a finished run.
        text: the text; ``[MASK]`` is the mask.
        pair: the second text, for a look at a pair.
        max_tokens: most tokens that are looked at, if the model takes so many. The weights are held in memory:
            layers x heads x tokens x tokens x 4 bytes.
        device: where the model runs, in fp32.

    Raises:
        InputError: if the folder holds no model, its model has no attention, or a text is blank.
    """
    return AttentionViewer(*open_model(folder, device=device, precision="fp32"), max_tokens=max_tokens)(text, pair)


def look_at_attention(
    folder: str | Path,
    text: str,
    pair: str | None = None,
    *,
    out: Path | None = None,
    layer: int | None = None,
    head: int | None = None,
    device: str = "auto",
    notify: Callable[[str], object],
) -> AttentionMap:
    """`attention_run`, drawn where `out` is given.

    Args:
        folder: as there, and so are `text`, `pair` and `device`.
        text: the text.
        pair: the second text.
        out: the picture, .png or .svg.
        layer: the layer that is drawn; all where not given.
        head: the head of `layer` that is drawn; all where not given.
        device: where the model runs.
        notify: is told what a person should know.

    Raises:
        InputError: as there; and for a picture that cannot be drawn, a layer or a head that the model does not have.
    """
    if out is not None:
        refuse_undrawable(out)
    model, tokenizer, chosen = open_model(folder, device=device, precision="fp32")
    viewer = AttentionViewer(model, tokenizer, chosen)
    encoder = model.config.encoder
    chosen_heads(encoder.num_hidden_layers, encoder.num_attention_heads, layer, head)
    found = viewer(text, pair)
    if found.cut:
        notify(f"the text is longer than is looked at: {len(found.tokens)} tokens of it are shown")
    if out is not None:
        draw_attention(found, out, layer=layer, head=head, notify=notify)
    return found
