"""RUN-PARITY: the synchronous and the asynchronous form of one store give the same outcomes."""

from __future__ import annotations

from runcert.cases import Case, Workplace
from runcert.checks import Inconclusive, Violation, clause
from runcert.handles import Handle
from runcert.wording import operation_in_words, outcome_in_words
from runcert_contract import Capability
from runcert_suites.run_store.programs import comparable, kind_of, program


@clause("RUN-PARITY-1", isolated=True)
class BothFormsAgree:
    """sync and async form of one store give the same outcomes."""

    def test_the_same_operations_have_the_same_outcomes(self, case: Case) -> None:
        """One random program of accepted, refused and wrong calls runs on both forms, and each outcome is the same."""
        other_form = case.adapter.parity_with
        if other_form is None:
            raise Inconclusive("the adapter names no other form of the store")
        workplace = case.workplace.beside(other_form())
        try:
            _compare(case, workplace, case.budget(150, 1_000, 10_000))
        finally:
            workplace.end()


def _compare(case: Case, workplace: Workplace, length: int) -> None:
    first = case.open()
    second = workplace.open(workplace.make())
    kinds: dict[str, int] = {}
    for operation in program(case, length, lists=_both_list(first, second)):
        outcomes = first.call(operation), second.call(operation)
        texts = [comparable(outcome, case.claims.numbers) for outcome in outcomes]
        if texts[0] != texts[1]:
            raise Violation(
                f"{operation_in_words(operation)} to give on the {_form(second)} form what it gives on the {_form(first)} one, "
                f"{outcome_in_words(outcomes[0])}",
                outcome_in_words(outcomes[1]),
            )
        kinds[kind_of(outcomes[0])] = kinds.get(kind_of(outcomes[0]), 0) + 1
    case.evidence["operations"] = length
    case.evidence["outcomes"] = dict(sorted(kinds.items()))


def _form(handle: Handle) -> str:
    return "asynchronous" if handle.adapter.claims.asynchronous else "synchronous"


def _both_list(first: Handle, second: Handle) -> bool:
    return all(handle.adapter.claims.claims(Capability.ENUMERATES) for handle in (first, second))
