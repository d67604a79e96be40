// y = a x + SHIFT. What looks like Mako, ${x} or the line below, is none here.
// %if
/*
% if
## nor this
*/
__kernel void saxpy(const float a, __global const float *x, __global float *y, uint n,
                    __local float *staged)
{
    for (uint i = get_global_id(0) * WORK; i < min((get_global_id(0) + 1) * WORK, (size_t)n); i++) {
        staged[get_local_id(0)] = x[i];
        y[i] = a * staged[get_local_id(0)] + SHIFT;
    }
}
