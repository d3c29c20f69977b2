"""Giving a model to the Hub."""

from pathlib import Path

from bertsmith.exchange.push import Destination, Pushed, push
from bertsmith.recipes.predict import model_folder_of


def push_run(
    folder: str | Path,
    name: str,
    *,
    revision: str = "main",
    private: bool = False,
    license_id: str | None = None,
    language: str | None = None,
) -> Pushed:
    """Upload a model folder, or the finished model of a run, in one commit with its card.

    Args:
        folder: the model folder or the run.
        name: `owner/name`, or `name` for the token's owner.
        revision: the branch; made where it is missing.
        private: whether nobody else may see it.
        license_id: the licence's identifier on the Hub; `unknown` where neither given nor told by the card.
        language: code of the text's language.

    Raises:
        InputError: if the folder is no whole model folder, there is no token, or the Hub refuses.
    """
    return push(model_folder_of(folder), Destination(name, revision, private), license_id=license_id, language=language)
