"""Pools of memory for the results of calls on device arrays.

A driver takes 0.1 ms or more to allocate memory. So each in-order queue has a pool for the memory
of deleted results. The order of the queue makes reuse safe while earlier commands still run. Memory
that a caller may have passed to another queue must not be reused, since no runtime reports whether
commands of that queue still use it. So a `PooledArray` leases its memory from the pool. Reading
`data` or `base_data`, as all functions of pyopencl do, ends the lease: from then on the memory is a
plain buffer, which the driver holds for as long as any command needs it. If the array is deleted
before that, its memory returns to the pool. The scratch memory of plans is from the same pools, and
returns once its launches are enqueued.

NVIDIA's driver holds a released buffer by waiting for all queues of the context, with Python's lock
held. So on devices with memory of their own the pool refers to buffers that others had, too, and
releases those that nobody else refers to when they have become many.
"""

from __future__ import annotations

import threading
import weakref
from collections import OrderedDict, deque
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from sys import getrefcount
from typing import Any

import pyopencl as cl
import pyopencl.array
import pyopencl.tools

from opencl_lab.core.queues import check_process
from opencl_lab.runtime.freeing import with_room

SMALL = 1 << 20
MOST_SIZES = 256
SPARED = 1 << 13
"""The share of the most idle bytes of a pool that a result may keep unused to save a copy, which
takes 20 us on an H200."""
MOST_LEFT = 4096
"""Most buffers that others had and that are not released at once."""
_ALONE = (0, object())


class _Lease(weakref.ref):  # type: ignore[type-arg]
    """A weak reference to an array, which returns the array's block to the pool.

    The array holds it. For small blocks its callback is a method written in C: a Ctrl-C in a Python
    function that runs while an array is deleted would be lost.
    """

    __slots__ = ("block", "nbytes", "pool")

    block: Any
    nbytes: int
    pool: QueuePool


def _end(lease: _Lease) -> None:
    lease.pool.give(lease.nbytes, lease.block)


class Pool:
    """A pool of memory blocks.

    Idle blocks of one size are on a stack. Any thread may take one, and any array that is deleted
    may return one, at any time; single operations on a `deque` are atomic, so they need no lock.
    `new` allocates a block of a given number of bytes, `on_host` in the host's memory. At most
    about `most_idle` bytes stay idle: blocks below a megabyte are counted only occasionally.
    """

    def __init__(self, new: Callable[[int], Any], most_idle: float, on_host: bool = False):
        self._new = new
        self._on_host = on_host
        self._most_idle = most_idle
        self._lock = threading.Lock()
        self._stacks: OrderedDict[int, deque[Any]] = OrderedDict()  # new sizes at the end
        self._given = 0  # bytes; an upper bound of the idle ones

    @property
    def idle_bytes(self) -> int:
        """Bytes that are held and not in use."""
        return sum(nbytes * len(stack) for nbytes, stack in list(self._stacks.items()))

    def stack(self, nbytes: int) -> deque[Any]:
        """Return the stack of idle blocks of a size, or of leases of them."""
        stack = self._stacks.get(nbytes)
        if stack is None:
            stack = deque()
            if self._most_idle >= 0:
                stack = self._stacks.setdefault(nbytes, stack)
        return stack

    def take(self, nbytes: int) -> Any:
        """Return a block of exactly this size: an idle one, else a new one (see `with_room`)."""
        stack = self._stacks.get(nbytes)
        if stack:
            try:
                found = stack.pop()
            except IndexError:
                pass  # another thread took the last one
            else:
                return found.block if type(found) is _Lease else found
        self._hold_limit()
        return with_room(lambda: self._new(nbytes), nbytes if self._on_host else 0)

    def give(self, nbytes: int, block: Any) -> None:
        """Return a block, used only by commands that precede those of whatever takes it next."""
        self.stack(nbytes).append(block)
        self._given += nbytes
        if self._given > self._most_idle:
            self._hold_limit()

    def _hold_limit(self) -> None:
        # An array may be deleted at any time, also while this thread holds the lock.
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
        """Free all idle blocks and hold none from now on."""
        self._most_idle = -1
        self.free_held()

    def free_held(self) -> None:
        """Free all idle blocks."""
        self._stacks.clear()
        self._given = 0


class QueuePool(Pool):
    """The pool of buffers of one queue; `exclusive` returns a context for its commands.

    At most about `most_left` bytes of buffers that others had wait for their release.
    """

    def __init__(
        self,
        queue: cl.CommandQueue,
        most_idle: float,
        exclusive: Callable[[], AbstractContextManager[Any]],
        most_left: float = 0,
        on_host: bool = False,
    ):
        # New memory is used at once, as some drivers report only then that there is none.
        super().__init__(pyopencl.tools.ImmediateAllocator(queue), most_idle, on_host)
        self.queue = queue
        self.exclusive = exclusive
        self._left: deque[tuple[int, Any]] = deque()  # with their sizes
        self._left_bytes = 0
        self._most_left = self._bytes_to_look = most_left
        self._count_to_look = MOST_LEFT

    def spares(self, nbytes: int) -> bool:
        """Return whether so many bytes of a result may be unused."""
        return SPARED * nbytes <= self._most_idle

    def leave(self, nbytes: int, block: Any) -> None:
        """Take note of a block whose lease ends, so that it is released together with others."""
        if nbytes > self._most_left:
            return
        self._left.append((nbytes, block))
        self._left_bytes += nbytes
        if self._left_bytes > self._bytes_to_look or len(self._left) > self._count_to_look:
            self._release_left()

    def _release_left(self) -> None:
        """Release the blocks to which nobody else refers."""
        if not self._lock.acquire(blocking=False):
            return
        try:
            known = [self._left.popleft() for _ in range(len(self._left))]
            alone = getrefcount(_ALONE[1])  # of an object that only a tuple refers to
            kept = [item for item in known if getrefcount(item[1]) > alone]
            self._left.extend(kept)
            self._left_bytes = sum(nbytes for nbytes, _ in kept)
            # Those that are in use do not count.
            self._bytes_to_look = self._most_left + self._left_bytes
            self._count_to_look = MOST_LEFT + len(kept)
        finally:
            self._lock.release()

    def free_held(self) -> None:
        """Free all blocks that nobody uses."""
        super().free_held()
        self._release_left()

    def retire(self) -> None:
        """See `Pool.retire`."""
        self._most_left = -1
        super().retire()


class PooledArray(cl.array.Array):
    """A device array whose memory returns to a pool, unless `base_data` is read."""

    @classmethod
    def of(
        cls,
        pool: QueuePool,
        block: cl.Buffer,
        attributes: dict[str, Any],
        event: cl.Event | None = None,
        room: int | None = None,
    ) -> PooledArray:
        """Return an array in a block of a pool, of `room` bytes if given, else of its own size.

        `attributes` are those of an array of this shape and type, without memory and events;
        `event` is that of the command which writes the array, if it has one.
        """
        array = cls.__new__(cls)  # the constructor takes longer than the rest of a call
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
        """Whether the array still leases its memory from a pool."""
        return "_lease" in vars(self)

    @property
    def events(self) -> list[cl.Event]:
        """Events to wait for; if there are none, a marker after all commands enqueued so far."""
        own = vars(self)
        lease = own.get("_lease")
        if "events" not in own and lease is not None:
            with lease.pool.exclusive():
                own.setdefault("events", [cl.enqueue_marker(lease.pool.queue)])
        events: list[cl.Event] = own["events"]
        return events

    @events.setter
    def events(self, events: list[cl.Event]) -> None:
        vars(self)["events"] = events

    @property
    def base_data(self) -> Any:
        """The memory; reading it ends the lease."""
        own = vars(self)
        lease = own.get("_lease")
        if lease is not None:
            self.events  # noqa: B018 - plain arrays need them
            own.setdefault("base_data", lease.block)
            if own.pop("_lease", None) is not None:
                own["_home"] = lease.pool
                lease.pool.leave(lease.nbytes, lease.block)
        return own["base_data"]

    @base_data.setter
    def base_data(self, memory: Any) -> None:
        own = vars(self)
        if "_lease" in own:
            self.base_data  # noqa: B018 - ends the lease
        own["base_data"] = memory

    def beginning(self, count: int) -> PooledArray:
        """Return the first elements of a pooled one-dimensional array without other references.

        They stay where they are if they fill half of the memory, or little is left of it. Else they
        are copied to a block of the pool, whose size is a power of two, so that calls with other
        counts can reuse it.
        """
        own = vars(self)
        nbytes = count * own["dtype"].itemsize
        changes = {"shape": (count,), "size": count, "nbytes": nbytes}
        lease = own["_lease"]
        if 2 * count >= own["size"] or lease.pool.spares(own["nbytes"] - nbytes):
            own.update(changes)
            return self
        pool, room = lease.pool, 1 << (nbytes - 1).bit_length()
        with pool.exclusive():
            block = pool.take(room)
            event = cl.enqueue_copy(pool.queue, block, lease.block, byte_count=nbytes)
        return self.of(pool, block, attributes_of(self) | changes, event, room)

    def add_event(self, evt: cl.Event) -> None:
        """See `pyopencl.array.Array.add_event`; the event may be of another queue."""
        self.base_data  # noqa: B018 - ends the lease
        super().add_event(evt)

    def _new_like_me(self, dtype: Any = None, queue: Any = None) -> PooledArray:
        """Make a result of pyopencl's arithmetic, of whose plain memory the pool takes note."""
        made = super()._new_like_me(dtype, queue)
        own = vars(self)
        home = own["_lease"].pool if "_lease" in own else own.get("_home")
        if home is not None and made.size and made.allocator is None:
            vars(made)["_home"] = home
            home.leave(made.nbytes, made.base_data)
        return made

    def get(self, queue: Any = None, ary: Any = None) -> Any:
        """See `pyopencl.array.Array.get`."""
        check_process()
        lease = vars(self).get("_lease")
        if lease is None:
            return super().get(queue, ary)
        plain = borrowed(self)
        if (queue or self.queue) != lease.pool.queue:
            plain.events = list(self.events)
        with lease.pool.exclusive():
            return plain.get(queue, ary)  # it waits, so no queue uses the memory afterwards

    def __reduce_ex__(self, protocol: Any) -> Any:
        plain = cl.array.Array.__new__(cl.array.Array)
        vars(plain).update(attributes_of(self), base_data=self.base_data, events=self.events)
        # Later protocols have `pickle` compare the class of the array with that of the copy.
        return plain.__reduce_ex__(min(protocol, 1))

    def __repr__(self) -> str:
        return super().__repr__().replace(type(self).__name__, "Array", 1)


def is_leased(array: cl.array.Array) -> bool:
    """Return whether an array is in memory of a pool, whose queue alone uses it."""
    return "_lease" in vars(array)


def borrowed(array: cl.array.Array) -> cl.array.Array:
    """Return an array on the same memory whose views do not end the lease.

    It is used on the queue of the pool, which is in-order, and not longer than `array` lives.
    """
    lease = vars(array).get("_lease")
    if lease is None:
        return array
    plain = cl.array.Array.__new__(cl.array.Array)
    vars(plain).update(attributes_of(array), base_data=lease.block, events=[])
    return plain


def attributes_of(array: cl.array.Array) -> dict[str, Any]:
    """Return the attributes of a device array, without its memory and events."""
    left_out = ("_lease", "_home", "base_data", "events")
    return {name: item for name, item in vars(array).items() if name not in left_out}


def block_of(array: cl.array.Array) -> Any:
    """Return the memory of a device array to identify it, without ending the lease."""
    lease = vars(array).get("_lease")
    return array.base_data if lease is None else lease.block
