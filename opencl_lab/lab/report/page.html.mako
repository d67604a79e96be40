<%page args="title, lead, chapters, machines, skipped, commands, version, style, script, digest" expression_filter="h"/>\
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
<%def name="grid(table, label, sortable=True)">\
<div class="scroll" tabindex="0" role="region" aria-label="${label}">
<table${" class=sortable" if sortable else ""}>
<thead><tr>
% for name, kind in zip(table.heads, table.kinds):
<th scope="col" class="${kind}">${name}</th>
% endfor
</tr></thead>
<tbody>
% for row in table.rows:
<tr>\
% for cell, kind in zip(row, table.kinds):
<% tag = "th" if cell.heads else "td" %>\
<${tag} class="${kind} ${cell.style}"${" scope=row" if cell.heads else ""}${f" data-order={cell.order:.9g}" if cell.order is not None else ""}\
% if cell.tip:
 title="${cell.tip}"\
% endif
>${cell.text}</${tag}>\
% endfor
</tr>
% endfor
</tbody>
</table>
</div>
% if table.caption:
<p class="options">${table.caption}</p>
% endif
</%def>\
<%def name="troubles(found, heading)">\
% if found:
<${heading}>Failures and remarks</${heading}>
<ul class="troubles">
% for trouble in found:
<li${" class=failed" if trouble.failed else ""}>${trouble.text}</li>
% endfor
</ul>
% endif
</%def>\
<%def name="content(section, heading)">\
% for sentence in section.summary:
<p>${sentence}</p>
% endfor
${troubles(section.troubles, heading)}
% if section.figures:
<div class="figures">
% for figure in section.figures:
<figure>
<figcaption>${figure.caption}</figcaption>
<img src="${figure.address}" alt="${figure.caption}: the table has its numbers" loading="lazy">
</figure>
% endfor
</div>
% endif
${grid(section.table, f"rows of {section.title}")}
</%def>\
<%def name="answers(chapter)">\
% if chapter.answers:
<dl class="answers">
% for question, sentences in chapter.answers:
<dt>${question}</dt>
% for sentence in sentences:
<dd>${sentence}</dd>
% endfor
% endfor
</dl>
% endif
% if chapter.notes:
<h3>What was left out</h3>
<ul class="troubles">
% for note in chapter.notes:
<li>${note}</li>
% endfor
</ul>
% endif
</%def>\
<nav aria-label="Contents">
<details open>
<summary>Contents</summary>
<ul>
<li><a href="#summary">Summary</a></li>
% for chapter in chapters:
<li><a href="#${chapter.anchor}">${chapter.title}</a>
% if chapter.device:
<span class="options">${chapter.device}</span>
% endif
% if len(chapter.sections) > 1:
<ul>
% for section in chapter.sections:
<li><a href="#${section.anchor}">${section.title}</a></li>
% endfor
</ul>
% endif
</li>
% endfor
<li><a href="#environment">Environment</a></li>
<li><a href="#commands">Commands</a></li>
</ul>
</details>
</nav>
<main>
<header>
<h1>${title}</h1>
<p class="lead">${lead}</p>
</header>
<section aria-labelledby="summary">
<h2 id="summary">Summary</h2>
% if any(section.ratios for chapter in chapters for section in chapter.sections):
<p class="options">The first row of each table has the total time of the fastest OpenCL algorithm at some of the sizes; the
other rows show how many times as long each other implementation takes. <span class="faster">Above 1</span> OpenCL is
faster, <span class="slower">below 1</span> it is slower, and <span class="level">&#8776;</span> means level within
noise.</p>
% endif
<ul class="overview">
% for chapter in chapters:
% for section in chapter.sections:
% if section.summary or section.ratios or section.troubles:
<li><a href="#${section.anchor if len(chapter.sections) > 1 else chapter.anchor}">${section.title}</a>
<span class="options">${", ".join(filter(None, (chapter.device, section.subtitle, chapter.source)))}</span>
% if section.summary:
<p>${" ".join(section.summary[:2])}</p>
% endif
% if section.ratios:
${grid(section.ratios, f"ratios of {section.title}", sortable=False)}
% endif
% for trouble in section.troubles[:2]:
<p class="${"failed" if trouble.failed else "options"}">${trouble.text}</p>
% endfor
% if len(section.troubles) > 2:
<p class="options">and ${len(section.troubles) - 2} more below</p>
% endif
</li>
% endif
% endfor
% endfor
</ul>
</section>
% for chapter in chapters:
<section aria-labelledby="${chapter.anchor}" class="chapter">
<h2 id="${chapter.anchor}">${chapter.title}</h2>
% if chapter.subtitle or chapter.device:
<p class="options">${", ".join(filter(None, (chapter.device, chapter.subtitle)))}</p>
% endif
% for warning in chapter.warnings:
<p class="warning">${warning}</p>
% endfor
${answers(chapter)}
% for section in chapter.sections:
% if len(chapter.sections) > 1 or section.title != chapter.title:
<h3 id="${section.anchor}" class="part">${section.title}</h3>
% if section.subtitle:
<p class="options">${section.subtitle}</p>
% endif
${content(section, "h4")}
% else:
${content(section, "h3")}
% endif
% endfor
% if chapter.command:
<p class="again">From ${chapter.source}, written by</p>
<pre class="scroll" tabindex="0">${chapter.command}</pre>
% endif
</section>
% endfor
<section aria-labelledby="environment">
<h2 id="environment">Environment</h2>
% for machine, facts in machines.items():
% if len(machines) > 1:
<h3>${machine}</h3>
% endif
<dl class="facts">
% for name, value in facts.items():
<div><dt>${name}</dt><dd>${value}</dd></div>
% endfor
</dl>
% endfor
</section>
% if skipped:
<section aria-labelledby="skipped">
<h2 id="skipped">Files left out</h2>
<ul class="troubles">
% for reason in skipped:
<li>${reason}</li>
% endfor
</ul>
</section>
% endif
<section aria-labelledby="commands">
<h2 id="commands">Commands</h2>
<p>These commands measured the results and made this page.</p>
<pre class="scroll" tabindex="0">${"\n".join(commands)}</pre>
</section>
<footer>
<p>opencl_lab ${version}. Unless a column says otherwise, times are medians of whole calls by the host's clock.
error/bound is the largest error divided by the bound for a correct result. Times are level within noise if the intervals
of their medians overlap; the tooltip of a spread shows the interval.</p>
</footer>
</main>
<script>${script | n}</script>
</body>
</html>
