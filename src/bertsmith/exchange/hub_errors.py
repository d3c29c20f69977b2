"""What goes wrong between here and the Hub, in the words of our errors."""

import contextlib
import errno
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from huggingface_hub import constants, get_token
from huggingface_hub.errors import (
    FileMetadataError,
    GatedRepoError,
    HfHubHTTPError,
    HFValidationError,
    HTTPError,  # pyright: ignore[reportPrivateImportUsage]  # The base of what the transport raises, whichever it is.
    LocalEntryNotFoundError,
    OfflineModeIsEnabled,
    RepositoryNotFoundError,
    RevisionNotFoundError,
)

from bertsmith.foundation.errors import InputError

FETCH_ONCE = "Fetch it once with a network."
GIVE_TOKEN = "Set HF_TOKEN to a token of yours, or log in with `hf auth login`."


class HubSilent(InputError):
    """The Hub gave no answer, or was not able to give one."""


@dataclass(frozen=True)
class Fetching:
    """A model comes from the Hub into this cache."""

    cache: Path


@dataclass(frozen=True)
class Pushing:
    """A model goes to the Hub."""


Action = Fetching | Pushing


@contextlib.contextmanager
def hub_errors(name: str, action: Action) -> Iterator[None]:
    """Turn what the Hub and its library say inside the block into an `InputError` about the model `name`."""
    try:
        yield
    except InputError:
        raise
    except HFValidationError as error:
        raise InputError(
            "A name on the Hub is owner/name, of letters, digits, '-', '_' and '.'", f"{name!r}", _first_line(error)
        ) from error
    except (LocalEntryNotFoundError, OfflineModeIsEnabled) as error:
        # Where the library wanted to ask the Hub and could not, it tells so last.
        if isinstance(error.__cause__, HTTPError | FileMetadataError):
            raise _silent(error.__cause__, action) from error
        raise InputError(
            "Offline, a model must be in the cache", f"{name}, which is not, and no folder has that path", FETCH_ONCE
        ) from error
    except HfHubHTTPError as error:
        raise _refused(name, error, action) from error
    except (HTTPError, FileMetadataError) as error:
        raise _silent(error, action) from error
    except RuntimeError as error:
        # An upload's threads wrap what happened to them.
        if isinstance(error.__cause__, OSError | HTTPError):
            with hub_errors(name, action):
                raise error.__cause__ from error
        raise
    except OSError as error:
        raise _on_this_side(name, error, action) from error


def _silent(error: BaseException, action: Action) -> HubSilent:
    do = "Check the network and HF_ENDPOINT, then give the same command again."
    return HubSilent(
        "The Hub must be reachable, and stay so until all has been transferred",
        f"{type(error).__name__} at {constants.ENDPOINT} ({_first_line(error)})",
        f"{do} What is in the cache needs no network: --offline." if isinstance(action, Fetching) else do,
    )


def _first_line(error: BaseException) -> str:
    """The first line of an error's message that says something."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0] if lines else type(error).__name__


def _refused(name: str, error: HfHubHTTPError, action: Action) -> InputError:
    status = error.response.status_code
    with_token = "without a token" if get_token() is None else "with the token given"
    if isinstance(error, GatedRepoError):
        return InputError(
            "A gated model is given to those who accepted its terms",
            f"{name}: HTTP {status} {with_token}",
            f"Accept the terms on its page. {GIVE_TOKEN}",
        )
    if isinstance(error, RepositoryNotFoundError):
        return InputError(
            "A model on the Hub must exist, and be open to you",
            f"{name}: HTTP {status} {with_token}",
            f"Check the name, or the path if a folder was meant. If it is private, a token opens it. {GIVE_TOKEN}",
        )
    if isinstance(error, RevisionNotFoundError):
        given = "--revision must be a branch, a tag or a commit"
        return InputError(
            f"{given if isinstance(action, Fetching) else '--branch must be a branch'} that exists",
            f"HTTP {status} for {name}",
            "Look at the model's history on the Hub.",
        )
    if status in (401, 403):
        # Also the answer to strangers for what is not there.
        return InputError(
            "The Hub must let you do this", f"{name}: HTTP {status} {with_token}", f"Check the name. {GIVE_TOKEN}"
        )
    kind = HubSilent if status >= 500 else InputError
    return kind("The Hub must be able to do this", f"{name}: HTTP {status} ({_first_line(error)})", "Try again later.")


def _on_this_side(name: str, error: OSError, action: Action) -> InputError:
    again = "then give the same command again."
    fetching = isinstance(action, Fetching)
    doing = f"{'fetching' if fetching else 'pushing'} {name}"
    if error.errno in (errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC)):
        return InputError(
            f"The disk must have room for what is {'fetched' if fetching else 'prepared for the Hub'}",
            f"no space left while {doing}",
            f"Free some space, or choose another cache with --cache, {again}" if fetching else f"Free some, {again}",
        )
    if error.errno is None:
        # The library's own check of sizes.
        do = f"Give the same command again{' to fetch it anew' if fetching else ''}."
        return InputError("A file must arrive whole", f"{name}: {_first_line(error)}", do)
    if isinstance(action, Fetching) and _lies_in(action.cache, error):
        return InputError(
            "The cache must be a folder that can be written",
            f"{error.strerror}: {error.filename}",
            "Choose another one with --cache.",
        )
    place = "" if error.filename is None else f": {error.filename}"
    return InputError(
        "The system must let files and connections be used",
        f"{error.strerror}{place}, while {doing}",
        f"Mend what it names, {again}",
    )


def _lies_in(cache: Path, error: OSError) -> bool:
    """Whether an error is about a file in the cache; the library follows the links on the way there."""
    names = [name for name in (error.filename, error.filename2) if isinstance(name, str)]
    whole = cache.expanduser().resolve()
    return any(Path(name).is_relative_to(part) for name in names for part in (cache, whole))
