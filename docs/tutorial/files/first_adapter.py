from collections.abc import Iterator

from first_store import FirstStore

from runcert import Lab, RunStore, adapter


@adapter(RunStore)
def first_store(lab: Lab) -> Iterator[RunStore]:
    yield FirstStore()
