"""A run store in a dictionary.  It looks right."""

from runcert_contract import AlreadyExists, Claims, Run, check_identifier, check_new_run, check_update

CLAIMS = Claims()


class FirstStore:
    def __init__(self) -> None:
        self._runs: dict[str, Run] = {}

    def create(self, run: Run) -> Run:
        check_new_run(run, CLAIMS)
        if run.run_id in self._runs:
            raise AlreadyExists(f"run {run.run_id!r} exists; find it, or take another id")
        self._runs[run.run_id] = run
        return run

    def find(self, run_id: str) -> Run | None:
        check_identifier(run_id, "run_id", CLAIMS)
        return self._runs.get(run_id)

    def compare_and_set(self, expected: Run, updated: Run) -> bool:
        check_update(expected, updated, CLAIMS)
        stored = self._runs.get(expected.run_id)
        if stored is None or stored.version != expected.version:
            return False
        self._runs[updated.run_id] = updated
        return True
