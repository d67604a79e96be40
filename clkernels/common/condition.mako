## A launch that one before it may have called off: it does nothing if a word of memory is zero.
##
##     parameters(CONDITIONAL)   the first parameter of the kernel, `wanted`, as a list: empty if the
##                               launch is always done; `first` is the same as text
##     check(CONDITIONAL)        what the kernel begins with
##
## Otherwise the host would have to wait for that word before it could enqueue what is wanted.
## All items of all groups return, before any barrier. Cost: a word that all of them read.
<%!
    def parameters(conditional):
        return ["__global const uint *restrict wanted"] * conditional
%>\
<%def name="first(CONDITIONAL)">${"".join(f"{line}, " for line in parameters(CONDITIONAL))}</%def>\
<%def name="check(CONDITIONAL)">\
% if CONDITIONAL:
    if (*wanted == 0)
        return;
% endif
</%def>\
