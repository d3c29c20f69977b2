"""What a frozen encoder knows: a linear classifier on its features, and nothing else trained."""

import warnings

import numpy as np
from jaxtyping import Float, Int

_MOST_ROUNDS = 2000


def probe_accuracy(
    train: Float[np.ndarray, "train hidden"],
    train_ids: Int[np.ndarray, " train"],
    test: Float[np.ndarray, "test hidden"],
    test_ids: Int[np.ndarray, " test"],
) -> float:
    """Accuracy of a logistic regression that was fitted to features of some rows, on other rows.

    Features are standardised by the mean and spread of the training rows. Nothing is drawn at random.

    Args:
        train: features of the rows to fit to, such as `frozen_features` gives.
        train_ids: their classes, two at least.
        test: features of the rows to judge by.
        test_ids: their classes.
    """
    from sklearn.exceptions import ConvergenceWarning  # It takes a second to load, and only this needs it.
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    probe = make_pipeline(StandardScaler(), LogisticRegression(max_iter=_MOST_ROUNDS))
    with warnings.catch_warnings():
        # Rows that can be told apart without error have no finite best weights; any of them will do.
        warnings.simplefilter("ignore", ConvergenceWarning)
        probe.fit(train, train_ids)
    return float(np.mean(probe.predict(test) == test_ids))
