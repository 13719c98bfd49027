from collections.abc import Iterator

from second_store import SecondStore

from runcert import Lab, RunStore, adapter


@adapter(RunStore)
def second_store(lab: Lab) -> Iterator[RunStore]:
    store = SecondStore()
    yield store
    store.close()
