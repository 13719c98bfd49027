from collections.abc import Iterator

from third_store import CLAIMS, ThirdStore

from runcert import Lab, RunStore, adapter


@adapter(RunStore, limits=CLAIMS.limits)
def third_store(lab: Lab) -> Iterator[RunStore]:
    store = ThirdStore()
    yield store
    store.close()
