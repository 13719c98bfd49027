"""Run stores in Valkey or Redis, synchronous and asynchronous, through redis-py.

Read :mod:`.keys` first (what is stored under which key), then :mod:`.scripts` (the operations, each atomic on the server),
:mod:`.operations` (what is asked and how the answer is read, shared by both forms), :mod:`.run_store` (the stores),
:mod:`.failures` (which error of driver and server is which error of the contract), :mod:`.connections` (how a server is
reached) and :mod:`.server_check` (which server is refused).
"""
