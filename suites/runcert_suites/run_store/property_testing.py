"""Running a Hypothesis property as part of a check: same seed, same examples; a failure is the violation of the shrunk example."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from hypothesis import HealthCheck, Phase, Verbosity, given, seed, settings
from hypothesis import strategies as st
from hypothesis.errors import Flaky

from runcert.cases import Case
from runcert.checks import Inconclusive, Violation
from runcert.handles import Step
from runcert_contract import Hung

__all__ = ["SHRINKING", "check_property", "settings_for", "shrinking_tries"]

SHRINKING = (Phase.explicit, Phase.generate, Phase.shrink)
"""The phases of a property in a check: nothing is reused from an earlier run, and no lines are traced."""


def settings_for(examples: int, **others: Any) -> settings:
    """Give the Hypothesis settings of a check, independent of any profile that the user loaded.

    Args:
        examples: how many examples are tried.
        others: further settings, for instance ``stateful_step_count``.
    """
    return settings(
        max_examples=examples,
        database=None,
        deadline=None,
        derandomize=False,
        phases=SHRINKING,
        print_blob=False,
        report_multiple_bugs=False,
        suppress_health_check=cast(
            "list[HealthCheck]", list(HealthCheck)
        ),  # iterating leaves out those that Hypothesis gave up
        verbosity=Verbosity.quiet,
        **others,
    )


def shrinking_tries(case: Case) -> int:
    """Give how many tries are spent on making a failing example smaller."""
    return case.budget(120, 1000, 3000)


def check_property(case: Case, examples: int, body: Callable[[Any], bool | None], values: st.SearchStrategy[Any]) -> None:
    """Try ``body`` on examples of ``values``; where it raises, find the smallest example and raise what that one raises.

    The steps of the case are those of the last example, so that a failure shows the shrunk one.  Facts about the examples
    are noted in ``case.evidence["examples"]``.

    Args:
        case: the check that the property belongs to; its seed decides the examples.
        examples: how many examples are tried.
        body: called with each example; False says that it decided nothing.
        values: where the examples come from.

    Raises:
        Violation: an example does not hold.
        Inconclusive: hardly any example decided anything.
    """
    attempt = _Attempt(case, body, shrinking_tries(case))

    @seed(case.seed)
    @settings_for(examples)
    @given(values)
    def holds(value: Any) -> None:
        attempt(value)

    try:
        holds()
    except (Flaky, Violation):
        attempt.raise_what_was_seen()
        raise
    case.steps.clear()
    case.evidence["examples"] = attempt.decided
    if attempt.decided * 4 < examples and attempt.decided < attempt.tried:
        raise Inconclusive(f"only {attempt.decided} of {attempt.tried} examples decided anything; the store refused the others")


class _Attempt:
    """One example after another, and the last violation that was seen, with its steps.

    A violation is made smaller for so many tries only; from then on the examples do nothing, which ends the search.  Tries
    are counted, not timed, so that the same seed gives the same steps on any machine.
    """

    def __init__(self, case: Case, body: Callable[[Any], bool | None], tries: int) -> None:
        self.tried = 0
        self.decided = 0
        self._case = case
        self._body = body
        self._tries = tries
        self._ends_after: int | None = None
        self._seen: tuple[Violation, list[Step]] | None = None

    def __call__(self, value: Any) -> None:
        if self._ends_after is not None and self.tried >= self._ends_after:
            return
        self._case.steps.clear()
        self.tried += 1
        try:
            self.decided += self._body(value) is not False
        except Violation as violation:
            self._note(violation)
            raise

    def _note(self, violation: Violation) -> None:
        self._seen = violation, list(self._case.steps)
        if self._ends_after is None:
            hung = any(isinstance(step.outcome, Hung) for step in self._case.steps)
            self._ends_after = self.tried + (0 if hung else self._tries)

    def raise_what_was_seen(self) -> None:
        """Raise the last violation: one that does not come again is a violation all the same."""
        if self._seen is not None:
            violation, self._case.steps[:] = self._seen
            raise violation
