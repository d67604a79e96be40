## How an image of n pixels is continued at coordinate i: a body of `extend` for each boundary
## condition, chosen by its name.
##
##     constant  cval cval cval | a b c d | cval        nearest  a a a | a b c d | d d d
##     reflect            c b a | a b c d | d c b       mirror   d c b | a b c d | c b a
##     wrap               b c d | a b c d | a b c
##
## FAR  whether i may lie so far beyond an edge that one reflection is not enough
<%def name="constant(FAR)">\
    return i >= 0 && i < n ? i : -1;
</%def>\
<%def name="nearest(FAR)">\
    return clamp(i, 0, n - 1);
</%def>\
<%def name="wrap(FAR)">\
% if FAR:
    const int k = i % n;
    return k < 0 ? k + n : k;
% else:
    return i < 0 ? i + n : i >= n ? i - n : i;
% endif
</%def>\
<%def name="reflect(FAR)">\
% if FAR:
    const int r = i % (2 * n);
    const int k = r < 0 ? r + 2 * n : r;
% else:
    const int k = i < 0 ? -1 - i : i;
% endif
    return k < n ? k : 2 * n - 1 - k;
</%def>\
<%def name="mirror(FAR)">\
% if FAR:
    const int period = max(2 * n - 2, 1);
    const int k = abs(i % period);
% else:
    const int k = abs(i);
% endif
    return k < n ? k : 2 * n - 2 - k;
</%def>\
