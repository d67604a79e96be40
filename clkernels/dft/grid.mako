## A one-dimensional grid that covers rows of points, each by whole work-groups of WG_SIZE.
<%page args="WG_SIZE"/>\

/* Which point of its row an item has; some of the last group have none and get `points` or more. */
static inline index_t point_of(const index_t points)
{
    const size_t groups = (points + (size_t)${WG_SIZE - 1}) / ${WG_SIZE};
    return (index_t)(get_group_id(0) % groups * ${WG_SIZE} + get_local_id(0));
}

static inline index_t row_of(const index_t points)
{
    return (index_t)(get_group_id(0) / ((points + (size_t)${WG_SIZE - 1}) / ${WG_SIZE}));
}
