/*
 * The first k keys of each long row in the order of sorted ones, with their places, for few keys:
 * a sample says which keys may be among them, so that a row is read once.
 *
 *     row       5 1 7 1 9 3 8 2 1 6 4 0 ..     keys that are equal are in the order of their places:
 *     samples     1     9   8     6            no two are alike
 *     limit         6, as few of the samples as must be are before it
 *     candidates  5 1 1 3 2 1 6 4 0 ..         all keys up to the limit, in any order
 *     first k     0 1 1 1 2                    a candidate's place is how many of the others are before it
 *
 *   guess   a key at random from each stretch of the row; of each `share` items, whose stretches are
 *           far apart, the first of their samples is a best one. The last group of a row sorts these:
 *           number `limit` of them is the limit
 *   take    writes down the places of all keys up to the limit
 *   rank    compares each candidate with all others: RANKED of them at a time by a group, whose items
 *           share out the others
 *
 * The host chooses `limit` so that fewer than k candidates, or more than there is room for, are not
 * to be expected in 10^8 rows, whatever the keys are and in whatever order: places of samples
 * depend on neither. If it happens all the same, one group of `rank` sorts the whole row, as many keys
 * as it has room for at a time, of which it keeps the first k.
 *
 * Source: own; a limit from samples as in R. W. Floyd, R. L. Rivest, "Expected time bounds for
 * selection", CACM 1975; the sort is K. E. Batcher's, "Sorting networks and their applications",
 * AFIPS 1968.
 *
 * The host guarantees: 0 < k < ROOM; `arrived` is all zero, and one launch at a time has it;
 * n is not less than the number of samples; limit < groups * SORTING / share <= ROOM; `bests` has so
 * many words a row, `candidates` has `capacity`; groups and share are powers of two; `rank` has
 * any number of groups for each row.
 *
 * ELEMENT    what a key is: see sort/keys.mako
 * WIDE       whether rows may have 2^31 keys or more
 * WG_SIZE    work-items of a group of `take`, a power of two
 * SORTING    of the others, which sort, a power of two
 * RANKED     candidates that a group ranks together, a power of two, at most SORTING
 * ITEM_KEYS  keys that an item of `take` reads together
 * SAMPLES    samples of an item, a power of two
 * ROOM       keys that a group sorts together, a power of two, at least SORTING
 * PTX        whether the device takes inline PTX
 */
<%page args="ELEMENT, WIDE, WG_SIZE, SORTING, RANKED, ITEM_KEYS, SAMPLES, ROOM, PTX"/>\
<%namespace name="keys" file="/sort/keys.mako"/>\
<%namespace name="fence" file="/common/fence.mako"/>\
<%namespace name="arrival" file="/common/arrival.mako"/>\
<%namespace name="registers" file="/common/registers.mako"/>\
${keys.declare(ELEMENT)}\
${fence.declare(PTX)}\
typedef ${"ulong" if WIDE else "uint"} index_t;
#define WG_SIZE ${WG_SIZE}
#define SORTING ${SORTING}
#define RANKED ${RANKED}
#define ITEM_KEYS ${ITEM_KEYS}
#define TILE (WG_SIZE * ITEM_KEYS)
#define SAMPLES ${SAMPLES}
#define ROOM ${ROOM}
#define NONE (~(index_t)0) /* a place behind all others */

/* Whether a key goes before another one: no two are equal, as their places differ. */
static inline bool is_before(const ukey_t code, const index_t place, const ukey_t other, const index_t other_place)
{
    return code < other || (code == other && place < other_place);
}

/* Where sample s of a row is: anywhere in its stretch. */
static inline index_t sampled(const uint s, const uint samples, const index_t n)
{
    const ulong begin = (ulong)s * n / samples, end = (ulong)(s + 1) * n / samples;
    uint mixed = (s ^ s >> 16) * 0x85ebca6bu;
    mixed = (mixed ^ mixed >> 13) * 0xc2b2ae35u;
    return (index_t)(begin + (mixed ^ mixed >> 16) % (uint)(end - begin));
}

/* Sort the first `count` codes, a power of two, with their places; none if it is zero. */
static inline void sort_local(__local ukey_t *codes, __local index_t *places, const uint count)
{
    for (uint size = 2; size <= count; size *= 2)
        for (uint distance = size / 2; distance; distance /= 2) {
            for (uint pair = (uint)get_local_id(0); pair < count / 2; pair += SORTING) {
                const uint i = 2 * pair - (pair & (distance - 1)), other = i + distance;
                const ukey_t a = codes[i], b = codes[other];
                const index_t p = places[i], q = places[other];
                if (is_before(b, q, a, p) != ((i & size) != 0)) {
                    codes[i] = b;
                    codes[other] = a;
                    places[i] = q;
                    places[other] = p;
                }
            }
            barrier(CLK_LOCAL_MEM_FENCE);
        }
}

__kernel __attribute__((reqd_work_group_size(${SORTING}, 1, 1)))
void guess(__global const ukey_t *keys,
           __global index_t *bests,
           volatile __global uint *arrived,
           __global uint *found,
           const index_t n,
           const uint groups,
           const uint share,
           const uint limit)
{
    __local ukey_t codes[ROOM];
    __local index_t places[ROOM];
    __local uint before_me;
    const uint item = (uint)get_local_id(0), group = (uint)(get_group_id(0) % groups);
    const size_t row = get_group_id(0) / groups;
    const uint own = SORTING / share; /* best ones of a group */
    keys += row * n;
    bests += row * groups * own;

    /* Neighbouring samples are those of different groups. */
    index_t from[SAMPLES];
    ukey_t mine[SAMPLES];
${registers.each("j", "SAMPLES", PTX)} {
        from[j] = sampled((j * SORTING + item) * groups + group, SAMPLES * SORTING * groups, n);
        mine[j] = code(keys[from[j]]);
    }
    ukey_t best = mine[0];
    index_t place = from[0];
${registers.each("j", "SAMPLES", PTX)}
        if (is_before(mine[j], from[j], best, place)) {
            best = mine[j];
            place = from[j];
        }
    codes[item] = best;
    places[item] = place;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint distance = SORTING / 2; distance >= own; distance /= 2) {
        const uint other = item + distance;
        if (item < distance && is_before(codes[other], places[other], codes[item], places[item])) {
            codes[item] = codes[other];
            places[item] = places[other];
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (item < own)
        bests[group * own + item] = places[item];
    ${arrival.arrive("arrived[row]", "before_me")}
    const bool last = before_me + 1 == groups;
    const uint count = last ? groups * own : 0;
    for (uint i = item; i < count; i += SORTING) {
        places[i] = bests[i];
        codes[i] = code(keys[places[i]]);
    }
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    sort_local(codes, places, count);
    if (last && item == 0) {
        bests[0] = places[limit];
        arrived[row] = 0;
        found[row] = 0;
    }
}

__kernel __attribute__((reqd_work_group_size(${WG_SIZE}, 1, 1)))
void take(__global const ukey_t *restrict keys,
          __global const index_t *restrict bests,
          volatile __global uint *found,
          __global index_t *restrict candidates,
          const index_t n,
          const uint slices,
          const uint stride,
          const uint capacity)
{
    const uint item = (uint)get_local_id(0);
    const size_t row = get_group_id(0) / slices;
    const index_t limit = bests[row * stride];
    keys += row * n;
    candidates += row * capacity;
    const ukey_t most = code(keys[limit]);
    /* Slices have tiles in turns, so that keys that are in order are not all in one. */
    for (ulong tile = (ulong)(get_group_id(0) % slices) * TILE; tile < n; tile += (ulong)slices * TILE) {
        const index_t first = (index_t)tile + item;
        const bool ties = tile <= limit; /* keys that are equal to that of the limit count up to it */
        ukey_t own[ITEM_KEYS];
        bool any = false;
        if (n - tile >= TILE) {
${registers.each("j", "ITEM_KEYS", PTX)}
                own[j] = keys[first + j * WG_SIZE];
        } else {
${registers.each("j", "ITEM_KEYS", PTX)}
                own[j] = keys[LESSER(first + j * WG_SIZE, n - 1)];
        }
${registers.each("j", "ITEM_KEYS", PTX)} {
            own[j] = code(own[j]);
            any |= own[j] < most || (ties && own[j] == most);
        }
        if (any) {
${registers.each("j", "ITEM_KEYS", PTX)} {
                const index_t place = first + j * WG_SIZE;
                if (place < n && (own[j] < most || (own[j] == most && place <= limit))) {
                    const uint to = atomic_inc(&found[row]);
                    if (to < capacity)
                        candidates[to] = place;
                }
            }
        }
    }
}

__kernel __attribute__((reqd_work_group_size(${SORTING}, 1, 1)))
void rank(__global const ukey_t *restrict keys,
          __global const uint *restrict found,
          __global const index_t *restrict candidates,
          __global ukey_t *restrict values,
          __global long *restrict places,
          const index_t n,
          const uint k,
          const uint groups,
          const uint capacity)
{
    __local ukey_t codes[ROOM];
    __local index_t from[ROOM];
    __local uint counts[SORTING];
    const uint item = (uint)get_local_id(0), group = (uint)(get_group_id(0) % groups);
    const size_t row = get_group_id(0) / groups;
    keys += row * n;
    candidates += row * capacity;
    values += row * k;
    places += row * k;
    const bool few = found[row] >= k && found[row] <= capacity;

    /* Count what is before each candidate of the group. */
    const uint part = item / RANKED, others = few ? found[row] : 0;
    for (uint first = group * RANKED; first < others; first += groups * RANKED) {
        const uint mine = first + item % RANKED;
        const bool there = mine < others;
        const index_t place = there ? candidates[mine] : 0;
        const ukey_t own = code(keys[place]);
        uint before = 0;
        for (uint begin = 0; begin < others; begin += ROOM) {
            const uint here = LESSER(others - begin, (uint)ROOM);
            for (uint i = item; i < here; i += SORTING) {
                from[i] = candidates[begin + i];
                codes[i] = code(keys[from[i]]);
            }
            barrier(CLK_LOCAL_MEM_FENCE);
            for (uint i = part; i < here; i += SORTING / RANKED)
                before += is_before(codes[i], from[i], own, place);
            barrier(CLK_LOCAL_MEM_FENCE);
        }
        counts[item] = before;
        barrier(CLK_LOCAL_MEM_FENCE);
        if (part == 0 && there) {
            for (uint i = item + RANKED; i < SORTING; i += RANKED)
                before += counts[i];
            if (before < k) {
                values[before] = keys[place];
                places[before] = (long)place;
            }
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }

    /* Without candidates the first group sorts the row. */
    const index_t count = few || group ? 0 : n;
    uint kept = 0;
    for (index_t done = 0; done < count;) {
        const uint more = (uint)LESSER(count - done, (index_t)(ROOM - kept)), all = kept + more;
        uint size = 2;
        while (size < all)
            size *= 2;
        for (uint i = kept + item; i < size; i += SORTING) {
            from[i] = i < all ? done + (i - kept) : NONE;
            codes[i] = i < all ? code(keys[from[i]]) : (ukey_t)~(ukey_t)0;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        sort_local(codes, from, size);
        done += more;
        kept = LESSER(all, k);
    }
    for (uint i = item; i < (count ? k : 0); i += SORTING) {
        values[i] = keys[from[i]];
        places[i] = (long)from[i];
    }
}
