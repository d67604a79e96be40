<%page args="FAULT, WG_SIZE"/>\
/* Doubles numbers, or fails in the way that FAULT says.
 *
 *   FAULT    one of the values in planted.py
 *   WG_SIZE  items in a work-group
 */
__kernel __attribute__((reqd_work_group_size(${WG_SIZE}, 1, 1)))
void planted(__global float *restrict source, __global float *restrict doubled, const int n)
{
    const int i = get_global_id(0);
% if FAULT == "syntax":
    this is no OpenCL C;
% elif FAULT == "crash":
    ((volatile __global int *)(size_t)(64 + 4 * i))[0] = 1;
% elif FAULT == "hang":
    volatile __global float *same = source;
    while (same[0] != 12345.0f)
        ;
% elif FAULT == "after":
    if (i == 0)
        doubled[n + 3] = 1.0f;
% elif FAULT == "before":
    if (i == 0)
        doubled[-2] = 1.0f;
% elif FAULT == "input":
    if (i == 0)
        source[n] = 1.0f;
% elif FAULT == "far":
    if (i == 0 && n > 2000)
        doubled[2 * n - 1] = 1.0f;
% endif
    if (i < ${"n - 1" if FAULT == "lazy" else "n"}) // lazy: an earlier run wrote the last one
% if FAULT == "later":
        doubled[i] = doubled[i] == 2.0f * source[i] || doubled[i] == 0.0f ? 0.0f : 2.0f * source[i];
% else:
        doubled[i] = ${"3.0f" if FAULT == "wrong" else "2.0f"} * source[i];
% endif
% if FAULT in ("spoil", "spoil-large"):
    if (i == n - 1${" && n > 2000" if FAULT == "spoil-large" else ""})
        source[i] = 1.0f;
% elif FAULT == "slow":
    float sum = 0.0f;
    for (int k = 0; k < 2000; k++)
        sum = sum * 0.5f + source[k % n];
    if (sum == 12345.0f)
        doubled[0] = sum;
% endif
}
