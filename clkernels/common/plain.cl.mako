<%page args="SOURCE"/>\
<%doc>
Hands on OpenCL C that is no template: what looks like Mako in it stays as it is.

  SOURCE  the text of the file
</%doc>\
${SOURCE}
