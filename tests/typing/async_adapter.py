from collections.abc import AsyncIterator

from tests.typing.own_stores import OwnAsyncStore

from runcert import AsyncRunStore, Lab, adapter


@adapter(AsyncRunStore)
async def my_store(lab: Lab) -> AsyncIterator[AsyncRunStore]:
    store = OwnAsyncStore(lab.directory)
    yield store
    await store.close()
