## What kernels over rows of points begin with: complex numbers, and a one-dimensional grid that covers
## each row by whole work-groups of WG_SIZE.
##
## ELEMENT  complex numbers: Element of core/kernels.py
## INDEX_T  unsigned type that counts the elements of the arrays
<%namespace name="extensions" file="/common/extensions.mako"/>\
<%namespace name="complex_numbers" file="complex.mako"/>\
<%def name="declare(ELEMENT, INDEX_T, WG_SIZE)">\
${extensions.enable(fp64=ELEMENT.double)}\
${complex_numbers.declare(ELEMENT, INDEX_T)}\

/* Work-groups of a row. The host keeps them, times the rows, within index_t, whose division is
   the cheaper the shorter it is. */
static inline index_t groups_of(const index_t points)
{
    return (points + ${WG_SIZE - 1}) / ${WG_SIZE};
}

/* Which point of its row an item has; some of the last group have none and get `points` or more. */
static inline index_t point_of(const index_t points)
{
    return (index_t)get_group_id(0) % groups_of(points) * ${WG_SIZE} + (index_t)get_local_id(0);
}

static inline index_t row_of(const index_t points)
{
    return (index_t)get_group_id(0) / groups_of(points);
}
</%def>\
