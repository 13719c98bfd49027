"""The same store, with records of its own and an end."""

from copy import deepcopy

from runcert_contract import AlreadyExists, Claims, Closed, Run, check_identifier, check_new_run, check_update

CLAIMS = Claims()


class SecondStore:
    def __init__(self) -> None:
        self._runs: dict[str, Run] = {}
        self._open = True

    def close(self) -> None:
        self._open = False

    def create(self, run: Run) -> Run:
        self._check_open()
        check_new_run(run, CLAIMS)
        if run.run_id in self._runs:
            raise AlreadyExists(f"run {run.run_id!r} exists; find it, or take another id")
        self._runs[run.run_id] = deepcopy(run)
        return deepcopy(run)

    def find(self, run_id: str) -> Run | None:
        self._check_open()
        check_identifier(run_id, "run_id", CLAIMS)
        return deepcopy(self._runs.get(run_id))

    def compare_and_set(self, expected: Run, updated: Run) -> bool:
        self._check_open()
        check_update(expected, updated, CLAIMS)
        stored = self._runs.get(expected.run_id)
        if stored is None or stored.version != expected.version:
            return False
        self._runs[updated.run_id] = deepcopy(updated)
        return True

    def _check_open(self) -> None:
        if not self._open:
            raise Closed("this handle was closed; open another one")
