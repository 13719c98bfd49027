"""The operations that read and write, as Lua scripts: a server runs each to its end before it does anything else.

A script that fails is not undone, so each first looks, then changes the index, and the record last: what can fail (a value of
another kind under a key) fails before anything is written.  The first line lets the server refuse a script as a whole where it
is out of memory, a replica, or must not write.
"""

from __future__ import annotations

__all__ = ["CREATE", "FIND_RESUMABLE", "REPLACE", "RETIRE"]

CREATE = """#!lua
local run, index = KEYS[1], KEYS[2]
local run_id, tenant, version, state, record = unpack(ARGV)
if redis.call('EXISTS', run) == 1 then return 'exists' end
if state == 'resumable' then redis.call('SADD', index, run_id) end
redis.call('HSET', run, 'tenant', tenant, 'version', version, 'state', state, 'record', record)
return 'created'
"""
"""Keys: run, index of its tenant.  Arguments: run id, tenant, version, state, record."""

REPLACE = """#!lua
local run, index = KEYS[1], KEYS[2]
local run_id, tenant, version, state, record, expected = unpack(ARGV)
local stored = redis.call('HMGET', run, 'tenant', 'version', 'state')
if stored[3] == 'terminal' or stored[3] == 'retired' then return 'refused' end
if not (stored[1] and stored[2] and stored[3] == 'resumable') then
  return redis.call('EXISTS', run) == 1 and 'corrupt' or 'refused'
end
if stored[2] ~= expected then return 'refused' end
if stored[1] ~= tenant then return 'tenant' end
redis.call(state == 'terminal' and 'SREM' or 'SADD', index, run_id)
redis.call('HSET', run, 'version', version, 'state', state, 'record', record)
return 'replaced'
"""
"""Keys: run, index of its tenant.  Arguments: run id, tenant, new version, new state, new record, expected version."""

FIND_RESUMABLE = """#!lua flags=no-writes
local found = {}
for _, run_id in ipairs(redis.call('SMEMBERS', KEYS[1])) do
  local stored = redis.pcall('HGETALL', ARGV[1] .. run_id)
  found[#found + 1] = run_id
  found[#found + 1] = not stored.err and stored
end
return found
"""
"""Key: index of the tenant.  Argument: what the key of every run begins with.  Gives ids and what lies under them, by turns."""

RETIRE = """#!lua
local run, run_id, indexes = KEYS[1], ARGV[1], ARGV[2]
local tenant = redis.call('HGET', run, 'tenant')
if redis.call('EXISTS', run) == 0 then return 'refused' end
if tenant then redis.call('SREM', indexes .. tenant, run_id) end
redis.call('DEL', run)
redis.call('HSET', run, 'state', 'retired')
return 'retired'
"""
"""Key: run.  Arguments: run id, what the key of every index begins with."""
