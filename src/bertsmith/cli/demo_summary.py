"""What the demonstration prints at its end."""

import typer

from bertsmith.cli.output import note, result
from bertsmith.cli.shell import typed
from bertsmith.recipes.demonstration.run import EXAMPLES, Demonstration


def show_demonstration(shown: Demonstration, *, as_json: bool) -> None:
    """Results on standard output, and what to try next."""
    run = shown.run
    figures = {
        "model": str(run.model_folder),
        "steps": run.steps,
        "tokens": run.tokens,
        "validation_loss": run.metrics["loss"],
        "context_free_loss": run.context_free_loss,
        "cloze_top5": shown.cloze_share,
        "cloze_top5_of_commonest_words": shown.common_words_share,
    }
    if as_json:
        result(figures | {"examples": dict(shown.examples)}, as_json=True)
        return
    typer.echo("")
    for text, words in shown.examples:
        typer.echo(f"  {text}\n      {'  '.join(words)}")
    typer.echo("")
    result(figures, as_json=False)
    note(f"\nreport: {run.folder / 'report.html'}")
    note("try next:")
    note(f'  bertsmith fill {typed(run.model_folder)} "{EXAMPLES[0]}"')
    note("  bertsmith pretrain YOUR_TEXT --out my-bert --minutes 30")
