<%page args="title, lead, sections, studies, machines, skipped, commands, version, style, script, digest" expression_filter="h"/>\
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-${digest}'; img-src data:">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="generator" content="opencl_lab ${version}">
<link rel="icon" href="data:,">
<title>${title}</title>
<style>
${style | n}</style>
</head>
<body>
<%def name="grid(table, label)">\
<div class="scroll" tabindex="0" role="region" aria-label="${label}">
<table class="sortable">
<thead><tr>
% for head, numeric in zip(table.heads, table.numeric):
<th scope="col"${" class=number" if numeric else ""}>${head}</th>
% endfor
</tr></thead>
<tbody>
% for row in table.rows:
<tr>
% for cell, numeric in zip(row, table.numeric):
<td${" class=number" if numeric else ""}${f" data-order={cell.order!r}" if cell.order is not None else ""}>\
% if cell.style:
<span class="${cell.style}">${cell.text}</span>\
% else:
${cell.text}\
% endif
</td>
% endfor
</tr>
% endfor
</tbody>
</table>
</div>
</%def>\
<header>
<h1>${title}</h1>
<p class="lead">${lead}</p>
</header>
<main>
<section aria-labelledby="summary">
<h2 id="summary">Summary</h2>
<ul class="overview">
% for section in sections:
<li><a href="#${section.anchor}">${section.title}</a>
% if section.subtitle:
<span class="options">${section.subtitle}</span>
% endif
% if section.summary:
<p>${" ".join(section.summary[:2])}</p>
% endif
% if section.troubles:
% for trouble in section.troubles[:2]:
<p class="${"failed" if trouble.failed else "options"}">${trouble.text}</p>
% endfor
% if len(section.troubles) > 2:
<p class="options">and ${len(section.troubles) - 2} more below</p>
% endif
% endif
</li>
% endfor
</ul>
</section>
% for study in studies:
<section>
<h2>Study ${study.title}</h2>
% if study.answers:
<dl class="answers">
% for question, sentences in study.answers:
<dt>${question}</dt>
% for sentence in sentences:
<dd>${sentence}</dd>
% endfor
% endfor
</dl>
% endif
% if study.printed is not None:
<h3>What the report printed</h3>
${grid(study.printed, f"figures that the report printed, {study.title}")}
% endif
% if study.notes:
<h3>What was left out</h3>
<ul>
% for note in study.notes:
<li>${note}</li>
% endfor
</ul>
% endif
</section>
% endfor
% for section in sections:
<section aria-labelledby="${section.anchor}">
<h2 id="${section.anchor}">${section.title}</h2>
% if section.subtitle:
<p class="options">${section.subtitle}</p>
% endif
% for sentence in section.summary:
<p>${sentence}</p>
% endfor
% if section.troubles:
<h3>Not measured or wrong</h3>
<ul class="troubles">
% for trouble in section.troubles:
<li${" class=failed" if trouble.failed else ""}>${trouble.text}</li>
% endfor
</ul>
% endif
% if section.figures:
<div class="figures">
% for figure in section.figures:
<figure>
<figcaption>${figure.caption}</figcaption>
<div class="scroll plot" tabindex="0" role="region" aria-label="${figure.caption}">${figure.svg | n}</div>
% if figure.legend:
<ul class="legend">
% for sample, name in figure.legend:
<li>${sample | n} ${name}</li>
% endfor
</ul>
% endif
</figure>
% endfor
</div>
% endif
${grid(section.table, f"rows of {section.title}")}
% if section.table.caption:
<p class="options">${section.table.caption}</p>
% endif
<p class="again">From ${section.source}, written by</p>
<pre class="scroll" tabindex="0">${section.command}</pre>
</section>
% endfor
<section aria-labelledby="environment">
<h2 id="environment">Environment</h2>
% for machine in machines:
<dl class="facts">
% for name, value in machine.facts:
<div><dt>${name}</dt><dd>${value}</dd></div>
% endfor
</dl>
% if len(machines) > 1:
<p class="options">${", ".join(machine.sources)}</p>
% endif
% endfor
</section>
% if skipped:
<section aria-labelledby="skipped">
<h2 id="skipped">Files that were left out</h2>
<ul>
% for reason in skipped:
<li>${reason}</li>
% endfor
</ul>
</section>
% endif
</main>
<footer>
% if commands:
<p>This page was made by</p>
% for command in commands:
<pre class="scroll" tabindex="0">${command}</pre>
% endfor
% endif
<p>opencl_lab ${version}. Times are medians of the public call by the host's clock unless a column says otherwise; the
error is the one that the result was judged by.</p>
</footer>
<script>${script | n}</script>
</body>
</html>
