## Numbers of the convolution by Fourier transforms: complex ones in memory, and magnitudes, which
## are compared as integers. See fft.cl.mako.
##
##   GROUP                      the attribute of all its kernels
##   PUT, RE, IM                complex number x of a row
##   bits_t, MAGNITUDE, NUMBER  the magnitude of a real number as an integer, and back: magnitudes.mako
##   SMALLEST, ROUNDING         limits of the type of sums
##   EACH(x, low, high)         a loop that the items of a work-group share
##   share_largest              a def: the largest number that any item of a work-group has
##
## PIXELS    types: see pixels.mako
## WG_SIZE   work-items in a work-group
<%namespace name="complex_numbers" file="/fourier/complex.mako"/>\
<%namespace name="magnitudes" file="/fourier/magnitudes.mako"/>\
## Make `name` the largest that any item of the work-group has.
<%def name="share_largest(name, WG_SIZE)">\
% if WG_SIZE > 1:
    __local bits_t all_${name}[${WG_SIZE}];
    all_${name}[get_local_id(0)] = ${name};
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int i = 0; i < ${WG_SIZE}; ++i)
        ${name} = max(${name}, all_${name}[i]);
% endif
</%def>\
<%def name="declare(PIXELS, WG_SIZE)">\
#define GROUP __attribute__((reqd_work_group_size(${WG_SIZE}, 1, 1)))
typedef ${PIXELS.sum_t}2 complex_t;
${complex_numbers.inlined()}\
/* PoCL calls its own max as a function, too. */
#define LARGER(a, b) ((a) > (b) ? (a) : (b))

/* Complex number x of a row. Items beside each other move whole ones; a compiler makes vectors of
   the loop of a single item if its numbers are scalars. */
% if WG_SIZE > 1:
#define PUT(row, x, a, b) ((__global complex_t *)(row))[x] = (complex_t)(a, b)
#define RE(row, x) ((__global const complex_t *)(row))[x].x
#define IM(row, x) ((__global const complex_t *)(row))[x].y
% else:
#define PUT(row, x, a, b) do { (row)[2 * (x)] = a; (row)[2 * (x) + 1] = b; } while (0)
#define RE(row, x) (row)[2 * (x)]
#define IM(row, x) (row)[2 * (x) + 1]
% endif

${magnitudes.declare(PIXELS.sum_t)}\
#define SMALLEST ${"FLT" if PIXELS.sum_t == "float" else "DBL"}_MIN
#define ROUNDING ${"FLT" if PIXELS.sum_t == "float" else "DBL"}_EPSILON

#define EACH(x, low, high) (int x = (low) + get_local_id(0); x < (high); x += ${WG_SIZE})
</%def>\
