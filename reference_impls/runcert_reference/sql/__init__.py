"""Run stores in an SQL database, synchronous and asynchronous, through SQLAlchemy Core.

Read :mod:`.tables` first (what is stored), then :mod:`.operations` (the four operations as statements, shared by both forms),
:mod:`.run_store` (the stores), :mod:`.failures` (which error of the driver is which error of the contract), :mod:`.engines`
(how SQLite is set up), :mod:`.schema` and ``migrations/`` (how the tables come to be).
"""
