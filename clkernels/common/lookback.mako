## Decoupled look-back: sums over all tiles before one, in a single launch.
##
## Each tile has a word that all groups see, and knows its own sum. It wants the sum of all tiles
## before it, but does not wait until each of these has got its own:
##
##   1. A tile announces its own sum, as OWN. A word of zero says that nothing is announced yet.
##   2. It looks back from the tile before it to earlier ones, and adds up what these have announced.
##   3. It is done at the first word that says ALL: that is the sum of all tiles up to that one.
##   4. It announces what it has found and its own sum together, as ALL. Tile 0 does so at once.
##
##     tile          t-5     t-4     t-3     t-2     t-1     t
##     own sum       3       1       4       1       5       9
##     its word      OWN 3   ALL 8   OWN 4   OWN 1   OWN 5   ALL 27, when this is done:
##                           8    +  4    +  1    +  5   = 18 before it, and 9
##
## So a tile adds as many words as tiles are under way at a time, however many there are. Number and
## meaning share a word, which is written and read in whole, so that no fence is needed:
##
##     ALL | OWN | number: 30 bits, or 62 with WIDE
##
## LOOKS words are read together, which takes no longer than one; those behind the first word of zero
## are of no use this time. Where nothing is announced this looks again.
##
## It cannot wait forever. With tickets, all tiles before have been started, and each announces OWN
## before it looks at any other: so where groups make progress the word comes. Where they do not, or
## start in another order, this gives up after MAX_POLLS looks in vain at one tile, works out by itself
## what that tile would have announced (`missing`), and goes on to the one before it. It looks at that
## one only once, and so on, until it finds a word again. That costs time and changes no result: such
## a tile announces the same number later.
##
## Source: D. Merrill, M. Garland, "Single-pass parallel prefix scan with decoupled look-back", 2016;
## counting for others: T. Smith et al., "Decoupled fallback", SPAA 2025.
##
## The caller guarantees: words are zero at first; a group announces its own sum before it looks back;
## sums are below 2^30, or 2^62 with WIDE; groups see words that others have written with volatile
## stores (PTX) or atomic operations. Tiles should be taken in order (tickets.mako), as else those
## that have not started are counted in vain. Cost: two writes per tile and sum, and about as many
## looks as tiles are under way at a time.
##
##   status_t            a word
##   announce(p, n)      n is the tile's own sum; p is where its word is
##   announce_all(p, n)  n is the sum of all tiles up to this one
##   look_back(..)       a fragment: the second and third of these
##
## WIDE       whether sums may be 2^30 or more: words of 64 bits
## PTX        whether the device takes inline PTX: volatile words are not kept in registers or near
##            memory there; other devices need atomic operations to say so
<%def name="declare(WIDE, PTX)">\
typedef ${"ulong" if WIDE else "uint"} status_t;
#define OWN ((status_t)1 << ${62 if WIDE else 30})
#define ALL ((status_t)2 << ${62 if WIDE else 30})
#define NUMBER (OWN - 1)

% if PTX:
#define LOOK(p) (*(p))
#define PUT(p, word) (*(p) = (word))
% elif WIDE:
#pragma OPENCL EXTENSION cl_khr_int64_base_atomics : enable
#define LOOK(p) atom_add((p), (ulong)0)
#define PUT(p, word) atom_xchg((p), (word))
% else:
#define LOOK(p) atomic_or((p), 0u)
#define PUT(p, word) atomic_xchg((p), (word))
% endif
#define announce(p, n) PUT((p), OWN | (status_t)(n))
#define announce_all(p, n) PUT((p), ALL | (status_t)(n))
</%def>\
## All arguments but the last two are OpenCL C.
##
## sum        a status_t, to which the sums of all tiles before are added
## words      where the words are: that of tile t at words + t * stride
## stride     see there
## tiles      how many tiles are before this one
## missing    what tile `t`, a variable of the fragment, would announce; without barriers
## LOOKS      words that are read together
## MAX_POLLS  looks in vain, one after the other, after which a tile's sum is worked out
<%def name="look_back(sum, words, stride, tiles, missing, LOOKS, MAX_POLLS)">\
{
    uint t = ${tiles}, polls = 0; /* tiles 0 to t - 1 are still to be added */
    bool looking = t > 0;
    while (looking) {
        const uint top = t;
% for k in range(LOOKS):
        const status_t word_${k} = ${k} < top ? LOOK(${words} + (size_t)(top - ${k + 1}) * ${stride}) : 0;
% endfor
        /* Add them in order, up to the first that says nothing, or ALL. */
        bool open = true;
% for k in range(LOOKS):
        open = open && word_${k};
        if (open) {
            ${sum} += word_${k} & NUMBER;
            --t;
            looking = !(word_${k} & ALL);
            open = looking;
        }
% endfor
        polls = t < top ? 0 : polls + 1;
        if (polls > ${MAX_POLLS}) {
            --t;
            ${sum} += (status_t)${missing};
        }
        looking = looking && t > 0;
    }
}
</%def>\
