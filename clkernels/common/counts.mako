## Counts in global memory that groups add to together: of 32 bits, or of 64 in two words.
##
##     wide     low word 0 | high word 0 | low word 1 | ..     for devices without atomic
##     else     count 0    | count 1     | ..                  operations on 64 bits
##
##   add(counts, i, n, wide)              count i grows by n, a uint; who makes the low word overflow
##                                        carries one into the high word
##   value(counts, i, wide, load)         count i; `load` is a macro that reads word number .., or None
##   clear(counts, i, wide)               count i becomes zero
##
## Source: own. The caller guarantees: counts are read and cleared when all have been added, as seen
## after a fence. Cost of `add`: an atomic operation, and another one for each carry.
<%def name="add(counts, i, n, wide)">\
% if wide:
const uint old = atomic_add(&${counts}[2 * ${i}], ${n});
if (old + ${n} < old)
    atomic_inc(&${counts}[2 * ${i} + 1]);
% else:
atomic_add(&${counts}[${i}], ${n});
% endif
</%def>\
<%def name="value(counts, i, wide, load=None)">\
<%
    words = [f"2 * {i} + 1", f"2 * {i}"] if wide else [i]
    loaded = [f"{load}({word})" if load else f"{counts}[{word}]" for word in words]
%>\
${" | ".join([f"(ulong){loaded[0]} << 32", loaded[1]] if wide else loaded)}\
</%def>\
<%def name="clear(counts, i, wide)">\
${f"{counts}[2 * {i}] = {counts}[2 * {i} + 1] = 0;" if wide else f"{counts}[{i}] = 0;"}\
</%def>\
