## A one-dimensional grid that covers rows of points, each by whole work-groups of WG_SIZE.
<%def name="declare(WG_SIZE)">\

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
