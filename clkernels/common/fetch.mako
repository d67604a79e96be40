## FETCH_LINE(address, writes) asks for a line of memory before it is needed, to read it or to write it.
##
## Source: own; `prefetch` of OpenCL C does nothing on PoCL, so that this is the built-in function of
## compilers that have one, else nothing. An address that may not be read does no harm. Cost: an
## instruction, and what else the memory could have done meanwhile.
##
## address   a pointer or a number, of whatever space
## writes    a constant: 1 where the line is written, 0 where it is read
<%def name="declare()">\
#if defined(__has_builtin)
#if __has_builtin(__builtin_prefetch)
#define FETCH_LINE(address, writes) __builtin_prefetch((const void *)(size_t)(address), writes, 3)
#endif
#endif
#ifndef FETCH_LINE
#define FETCH_LINE(address, writes)
#endif

</%def>\
