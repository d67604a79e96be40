"""Memory for the results of calls on device arrays, which is used again when nobody else can.

A driver takes a tenth of a millisecond and more for new memory. The pool of a queue keeps what
results have lain in, and the order of the queue makes it safe to use this again while earlier
commands still run. Memory that somebody else may have handed to another queue must not be used
again: no runtime tells whether commands of that queue are done with it. So a result gives its
memory back only if nobody has asked for it. A `PooledArray` holds a lease until `data` or
`base_data` are read, as all functions of pyopencl do. That ends the lease: from then on its memory
is a plain buffer, which the driver keeps for as long as any command needs it.
"""

from __future__ import annotations

import threading
import weakref
from collections import OrderedDict, deque
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from typing import Any

import pyopencl as cl
import pyopencl.array
import pyopencl.tools

from opencl_lab.runtime.freeing import with_room

SMALL = 1 << 20
MOST_SIZES = 256


class _Lease(weakref.ref):  # type: ignore[type-arg]
    """What a pool gets back when an array dies; the array holds it until then.

    For small blocks its callback is a method written in C: Ctrl-C in a function of Python's that
    runs while an array dies would be lost.
    """

    __slots__ = ("block", "nbytes", "pool")

    block: Any
    nbytes: int
    pool: Pool


def _end(lease: _Lease) -> None:
    lease.pool.give(lease.nbytes, lease.block)


class Pool:
    """Blocks of memory that no array lives in.

    Each size has a stack, from which any thread takes and to which any array that dies gives, at
    any moment; what one operation on a `deque` does needs no lock. `new` makes a block of so many
    bytes. About `most_idle` bytes are kept: blocks below a megabyte are counted now and then.
    """

    def __init__(self, new: Callable[[int], Any], most_idle: float):
        self._new = new
        self._most_idle = most_idle
        self._lock = threading.Lock()
        self._stacks: OrderedDict[int, deque[Any]] = OrderedDict()  # new sizes at the end
        self._given = 0  # bytes, at least as many as are idle

    @property
    def idle_bytes(self) -> int:
        """Bytes that are kept and not in use."""
        return sum(nbytes * len(stack) for nbytes, stack in list(self._stacks.items()))

    def stack(self, nbytes: int) -> deque[Any]:
        """Return the blocks of a size that are not in use, or leases of them."""
        stack = self._stacks.get(nbytes)
        if stack is None:
            stack = deque()
            if self._most_idle >= 0:
                stack = self._stacks.setdefault(nbytes, stack)
        return stack

    def take(self, nbytes: int) -> Any:
        """Return a block of exactly this size, if need be after all that is idle was given back."""
        stack = self._stacks.get(nbytes)
        if stack:
            try:
                found = stack.pop()
            except IndexError:
                pass  # another thread was quicker
            else:
                return found.block if type(found) is _Lease else found
        self._hold_limit()
        return with_room(lambda: self._new(nbytes))

    def give(self, nbytes: int, block: Any) -> None:
        """Take back a block that only those may still use who come before whoever takes it."""
        self.stack(nbytes).append(block)
        self._given += nbytes
        if self._given > self._most_idle:
            self._hold_limit()

    def _hold_limit(self) -> None:
        # An array may die at any moment, also while this thread is in here.
        if not self._lock.acquire(blocking=False):
            return
        try:
            sizes = list(self._stacks.items())
            idle = self.idle_bytes
            for index, (nbytes, stack) in enumerate(sizes):
                if idle <= self._most_idle and len(sizes) - index <= MOST_SIZES:
                    break
                while stack and (idle > self._most_idle or len(sizes) - index > MOST_SIZES):
                    with suppress(IndexError):
                        stack.popleft()
                        idle -= nbytes
                if not stack:
                    self._stacks.pop(nbytes, None)
            self._given = idle
        finally:
            self._lock.release()

    def retire(self) -> None:
        """Keep nothing from now on."""
        self._most_idle = -1
        self.free_held()

    def free_held(self) -> None:
        """Give all that is not in use back to the driver."""
        self._stacks.clear()
        self._given = 0


class QueuePool(Pool):
    """Buffers of one in-order queue that no array lives in; `alone` is the lock of the queue."""

    def __init__(
        self, queue: cl.CommandQueue, most_idle: float, alone: AbstractContextManager[Any]
    ):
        # New memory is used at once, as some drivers find out only then that there is none.
        super().__init__(pyopencl.tools.ImmediateAllocator(queue), most_idle)
        self.queue = queue
        self.alone = alone


class PooledArray(cl.array.Array):
    """A device array like any other, whose memory goes back to a pool if nobody asks for it."""

    @classmethod
    def of(
        cls,
        pool: QueuePool,
        block: cl.Buffer,
        attributes: dict[str, Any],
        event: cl.Event | None = None,
        room: int | None = None,
    ) -> PooledArray:
        """Return an array in a block of a pool, of `room` bytes if that is more than it needs.

        The attributes are those of an array of this shape and type, but for memory and events;
        `event` is that of the command which writes it, if it has one.
        """
        array = cls.__new__(cls)  # the constructor takes longer than all else that a call does
        nbytes = room or attributes["nbytes"]
        lease = _Lease(array, pool.stack(nbytes).append if nbytes < SMALL else _end)
        lease.pool, lease.nbytes, lease.block = pool, nbytes, block
        own = attributes.copy()
        if event is not None:
            own["events"] = [event]
        own["_lease"] = lease
        array.__dict__ = own
        return array

    @property
    def is_pooled(self) -> bool:
        """Whether its memory goes back to a pool if nobody asks for it from now on."""
        return "_lease" in vars(self)

    @property
    def events(self) -> list[cl.Event]:
        """Events to wait for: if it has none, one of all commands that its queue has by now."""
        own = vars(self)
        lease = own.get("_lease")
        if "events" not in own and lease is not None:
            with lease.pool.alone:
                own.setdefault("events", [cl.enqueue_marker(lease.pool.queue)])
        events: list[cl.Event] = own["events"]
        return events

    @events.setter
    def events(self, events: list[cl.Event]) -> None:
        vars(self)["events"] = events

    @property
    def base_data(self) -> Any:
        """The memory, which does not go back to the pool from now on."""
        own = vars(self)
        lease = own.get("_lease")
        if lease is not None:
            self.events  # noqa: B018 - other arrays have them
            own.setdefault("base_data", lease.block)
            own.pop("_lease", None)
        return own["base_data"]

    @base_data.setter
    def base_data(self, memory: Any) -> None:
        own = vars(self)
        if "_lease" in own:
            self.base_data  # noqa: B018 - ends the lease
        own["base_data"] = memory

    def beginning(self, count: int) -> PooledArray:
        """Return the first elements of a pooled array of one dimension, which nobody else has.

        They stay where they are if they fill half of the memory. Else they are copied to a block of
        the pool, of one of few sizes: calls that find other counts shall find it again.
        """
        own = vars(self)
        nbytes = count * own["dtype"].itemsize
        changes = {"shape": (count,), "size": count, "nbytes": nbytes}
        if 2 * count >= own["size"]:
            own.update(changes)
            return self
        lease = own["_lease"]
        pool, room = lease.pool, 1 << (nbytes - 1).bit_length()
        block = pool.take(room)
        with pool.alone:
            event = cl.enqueue_copy(pool.queue, block, lease.block, byte_count=nbytes)
        return self.of(pool, block, attributes_of(self) | changes, event, room)

    def add_event(self, evt: cl.Event) -> None:
        """See `pyopencl.array.Array.add_event`; of another queue perhaps."""
        self.base_data  # noqa: B018 - ends the lease
        super().add_event(evt)

    def get(self, queue: Any = None, ary: Any = None) -> Any:
        """See `pyopencl.array.Array.get`."""
        own = dict(vars(self))
        lease = own.pop("_lease", None)
        if lease is None:
            return super().get(queue, ary)
        plain = cl.array.Array.__new__(cl.array.Array)
        vars(plain).update(own)
        plain.base_data = lease.block
        if (queue or own["queue"]) == lease.pool.queue:
            plain.events = []  # the order of the queue says it
        else:
            plain.events = list(self.events)
        with lease.pool.alone:
            return plain.get(queue, ary)  # it waits, so that no queue uses the memory afterwards

    def __reduce_ex__(self, protocol: Any) -> Any:
        self.base_data  # noqa: B018 - a copy shares the memory
        plain = cl.array.Array.__new__(cl.array.Array)
        vars(plain).update(vars(self))
        # Later protocols have `pickle` compare the class of the array with that of the copy.
        return plain.__reduce_ex__(min(protocol, 1))

    def __repr__(self) -> str:
        return super().__repr__().replace(type(self).__name__, "Array", 1)


def attributes_of(array: cl.array.Array) -> dict[str, Any]:
    """Return the attributes of a device array but for its memory and events."""
    left_out = ("_lease", "base_data", "events")
    return {name: item for name, item in vars(array).items() if name not in left_out}


def block_of(array: cl.array.Array) -> Any:
    """Return the memory of a device array only to tell it by: the lease does not end."""
    lease = vars(array).get("_lease")
    return array.base_data if lease is None else lease.block
