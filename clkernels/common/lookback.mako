## Decoupled look-back: sums over all tiles before one, in a single launch.
##
## A tile announces its own sum first, and the sum of all up to it as soon as it knows that. Who needs
## the sum of those before looks back from tile to tile, adds up what tiles have announced, and is
## done where one knows the sum of all:
##
##     tile            t-4        t-3        t-2        t-1        t
##     announced     sum of all   own        own        own      <- looks back, adds 4 words
##
## Number and meaning share a word, which is written and read in whole, so that no fence is needed.
## Nothing is taken for granted about the progress of other groups: who has looked MAX_POLLS times at a
## tile that has not announced anything counts what that tile would (`missing`), and goes on.
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
##   status_t            a word; zero where nothing has been announced
##   announce(p, n)      n is the tile's own sum
##   announce_all(p, n)  n is the sum of all tiles up to this one
##   look_back(..)       see the macro
##
## WIDE       whether sums may be 2^30 or more: words of 64 bits
## PTX        whether the device takes inline PTX: volatile words are not kept in registers or near
##            memory there; other devices need atomic operations to say so
## LOOKS      tiles that one looks at together, which takes no longer than one
## MAX_POLLS  how often one looks at a tile
<%def name="declare(WIDE, PTX, LOOKS, MAX_POLLS)">\
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

/* Add to `sum` the sums of the `tiles` tiles before; word t is at words + t * stride, and MISSING is an
   expression for the sum of tile `t`. */
#define look_back(sum, words, stride, tiles, MISSING)                                              \
    do {                                                                                           \
        uint t = (tiles), polls = 0;                                                               \
        bool looking = t > 0;                                                                      \
        while (looking) {                                                                          \
            bool open = true;                                                                      \
            const uint top = t;                                                                    \
% for k in range(LOOKS):
            const status_t word_${k} = ${k} < top ? LOOK((words) + (size_t)(top - ${k + 1}) * (stride)) : 0; \
% endfor
% for k in range(LOOKS):
            open = open && word_${k};                                                                 \
            if (open) {                                                                            \
                sum += word_${k} & NUMBER;                                                            \
                --t;                                                                               \
                looking = !(word_${k} & ALL);                                                         \
                open = looking;                                                                    \
            }                                                                                      \
% endfor
            polls = t < top ? 0 : polls + 1;                                                       \
            if (polls > ${MAX_POLLS}) {                                                                 \
                --t;                                                                               \
                sum += (status_t)(MISSING);                                                        \
            }                                                                                      \
            looking = looking && t > 0;                                                            \
        }                                                                                          \
    } while (0)
</%def>\
