"""Servers that the kit provides: real ones, private to one run, and always stopped.

An adapter asks for a server with ``lab.server("postgresql")``.  The question travels over a socket (:mod:`.asking`) to the
process that owns the run (:mod:`.desk`), which starts the server at first use and shares it among everybody who asks for the
same settings (:mod:`.owner`).  It comes in one of three ways: an address that the user gave, binaries on this machine
(:mod:`.binaries`), or a container (:mod:`.containers`); :mod:`.offers` says which can be had.  Each kind of server is one
module: :mod:`.postgresql`, :mod:`.mariadb`, :mod:`.valkey`.  Processes are started and stopped by a guardian (:mod:`.guardian`,
:mod:`.guarding`), which goes on when the kit is killed, and ends when everything is stopped and removed.
"""
