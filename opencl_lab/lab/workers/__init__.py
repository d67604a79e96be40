"""Processes of ours that answer requests, so that whatever they do harms nobody else.

All have one protocol. `link` carries messages over a socket; `worker` is the side that starts a
process, asks it, waits no longer than to a deadline, ends it, and says how it ended; `child` is the
process itself.

```text
 Worker                                             child
   | START, a socket ------------------------------> isolates itself
   | (.., "module:target", arguments) -------------> target(*arguments, say): the servant
   | <---------------- ("said", word), ..., ("done", None)
   | (method, arguments) --------------------------> servant.method(*arguments)
   | <---------------- ("said", word), ..., ("done", value) or ("failed", Failed)
   | ...
   | None, or the end of the socket ---------------> ends, the latter at once, whatever it does
```

`Worker.stop` kills a process and leaves the rest to whoever waits for it. `Worker.kill` also waits
for its end and closes what it had. Only the ranks of MPI are told by None to end, so that MPI ends
in order.
"""
