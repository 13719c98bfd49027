from collections.abc import Iterator

from tests.typing.own_stores import OwnStore

from runcert import Lab, RunStore, adapter


@adapter(RunStore)
def my_store(lab: Lab) -> Iterator[RunStore]:
    store = OwnStore(lab.directory)
    yield store
    store.close()
