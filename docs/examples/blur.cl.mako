<%page args="WG_SIZE, WORK_PER_ITEM, RADIUS"/>\
/* Mean of the 2 RADIUS + 1 elements round each element; beyond the ends there are zeros.
 *
 * One item makes WORK_PER_ITEM neighbouring means: it forms the first sum whole, and
 * then moves the window on, adding one element and dropping one.
 *
 *   WG_SIZE        items in a work-group
 *   WORK_PER_ITEM  means of one item
 *   RADIUS         given by the problem
 */
static float element(__global const float *restrict source, int i, int n)
{
    return i >= 0 && i < n ? source[i] : 0.0f;
}

__kernel __attribute__((reqd_work_group_size(${WG_SIZE}, 1, 1)))
void blur(__global const float *restrict source, __global float *restrict blurred, const int n)
{
    const int first = get_global_id(0) * ${WORK_PER_ITEM};
    float sum = 0.0f;
    for (int i = first - ${RADIUS}; i <= first + ${RADIUS}; i++)
        sum += element(source, i, n);
    for (int i = first; i < min(first + ${WORK_PER_ITEM}, n); i++) {
        blurred[i] = sum * ${1 / (2 * RADIUS + 1)}f;
        sum += element(source, i + ${RADIUS + 1}, n) - element(source, i - ${RADIUS}, n);
    }
}
