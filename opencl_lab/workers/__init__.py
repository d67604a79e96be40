"""Worker processes that answer requests, so that crashes and hangs stay in them.

All use one protocol. `link` carries messages over a socket. `worker` is the parent's side: it
starts a worker, sends requests, waits until a deadline, kills it, and reports how it ended.
`serving` is the worker's side.

```text
 parent: Worker                                     worker: serving.main
   | START, a socket ------------------------------> ignores signals, limits itself
   | (.., "module:target", arguments) -------------> handler = target(*arguments, say)
   | <---------------- ("said", word), ..., ("done", None)
   | (method, arguments) --------------------------> handler.method(*arguments)
   | <---------------- ("said", word), ..., ("done", value) or ("failed", Failed)
   | ...
   | None ------------------------------------------> ends after this request
   | the socket is closed --------------------------> ends at once, even during a request
```

`Worker.stop` kills a worker; a thread that waits for its answer gets `Died`. `Worker.kill` also
waits for its end and closes its files. Only MPI ranks are sent None, so that MPI is finalized.
"""
