"""How a report looks: one style for wide and narrow screens, light, dark and paper."""

from __future__ import annotations

from parasol.report.themed import theme_css

_SANS = 'system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif'
_SERIF = '"Iowan Old Style", "Palatino Linotype", Palatino, "Book Antiqua", "Source Serif 4", Georgia, serif'
_MONO = 'ui-monospace, "SF Mono", "Cascadia Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace'

_PAGE = """
:root { color-scheme: light dark; --paper: #fdfcf9; --ink: #23262b; --soft: #5c6169; --line: #d9d6cd; --link: #0b5394;
  --ours: #eaf1f8; --code: #f1efe8; --shade: #0003; }
@media screen and (prefers-color-scheme: dark) { :root { --paper: #16181c; --ink: #e3e2dd; --soft: #a4a9b2; --line: #3a3e46;
  --link: #8fbcec; --ours: #1f2b39; --code: #23262c; --shade: #000c; } }
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; text-size-adjust: 100%; }
body { margin: 0; background: var(--paper); color: var(--ink); font: 1.0625rem/1.6 SERIF; }
main, header, footer { max-width: 60rem; margin: 0 auto; padding: 0 1.25rem; }
header { padding-top: 3rem; margin-bottom: 1.4rem; }
h1, h2, nav, table, .caption, .subtitle, .statement dt, .panel text, summary, footer { font-family: SANS; }
h1 { font-size: clamp(1.7rem, 5vw, 2.5rem); line-height: 1.15; letter-spacing: -0.02em; margin: 0 0 .5rem;
  text-wrap: balance; }
h2 { font-size: 1.4rem; line-height: 1.25; letter-spacing: -0.01em; margin: 3.2rem 0 .8rem; text-wrap: balance; }
h1, h2 { font-weight: 650; }
.subtitle { font-size: 1.1rem; color: var(--soft); margin: 0; max-width: 44rem; }
p { max-width: 44rem; margin: 0 0 1rem; hyphens: auto; overflow-wrap: break-word; }
a { color: var(--link); text-decoration-thickness: 1px; text-underline-offset: .15em; }
a:focus-visible, .scroll:focus-visible, summary:focus-visible { outline: 2px solid var(--link); outline-offset: 2px; }
nav { margin: 2rem 0 0; padding: 1rem 0; border-block: 1px solid var(--line); font-size: .95rem; }
nav ol { margin: 0; padding-left: 1.4rem; columns: 18rem 2; column-gap: 2.5rem; }
nav li { break-inside: avoid; padding: .1rem 0; }
nav li::marker { color: var(--soft); font-variant-numeric: tabular-nums; }
nav a { text-decoration: none; }
nav a:hover { text-decoration: underline; }
code, pre { font-family: MONO; font-size: .88em; background: var(--code); border-radius: 4px; }
code { padding: .1em .3em; overflow-wrap: anywhere; }
pre { padding: .8rem 1rem; white-space: pre-wrap; overflow-wrap: anywhere; }
pre code { padding: 0; background: none; font-size: 1em; }
pre code span { display: inline-block; max-width: 100%; } /* no line ends inside of a word that has room on the next */
sup, sub { font-size: .72em; line-height: 0; }
"""

# as ordinary boxes: without a font for mathematics browsers set brackets too high and indices too high
_MATH = """
math, math * { display: inline; font-family: inherit; }
math, [role=math] { font-family: SERIF; white-space: nowrap; }
.formula [role=math] { white-space: normal; }
math mi { font-style: normal; text-transform: none; }
math mi.v { font-style: italic; }
math mo { margin: 0 .2em; }
math mo.fence, math mo.comma, math > mo:first-child, math mo:first-child { margin: 0; }
math mo.comma { margin-right: .2em; }
math mspace { display: inline-block; }
math msub > :nth-child(2), math msup > :nth-child(2), math msubsup > :nth-child(n + 2) { font-size: .72em; line-height: 0;
  position: relative; }
math msub > :nth-child(2), math msubsup > :nth-child(2) { top: .3em; }
math msup > :nth-child(2), math msubsup > :nth-child(3) { top: -.5em; }
math msub > :nth-child(2) *, math msup > :nth-child(2) * { margin: 0; }
math mfrac { display: inline-block; vertical-align: middle; text-align: center; font-size: .9em; line-height: 1.25; }
math mfrac > * { display: block; padding: 0 .2em; }
math mfrac > :nth-child(2) { border-top: 1px solid currentColor; }
math msqrt { border-top: 1px solid currentColor; margin-left: .65em; }
math msqrt::before { content: "√"; margin-left: -.65em; }
.statement { display: grid; grid-template-columns: max-content minmax(0, 1fr); gap: .35rem 1.25rem; margin: 0 0 1.6rem; }
.statement dt { color: var(--soft); font-size: .92rem; padding-top: .1rem; }
.statement dd { margin: 0; min-width: 0; }
.formula { overflow-x: auto; padding: .1rem 0; }
.condition { display: flex; flex-wrap: wrap; gap: 0 .5rem; max-width: 100%; }
.condition > .formula { min-width: 0; }
.condition .formula, .domain .formula { display: inline-block; max-width: 100%; vertical-align: bottom; }
"""

_BLOCKS = """
.caption { color: var(--soft); font-size: .92rem; line-height: 1.45; max-width: 46rem; }
.caption b { color: var(--ink); font-weight: 600; }
.table { margin: 1.6rem 0 2rem; }
.table .caption { margin: 0 0 .6rem; }
.scroll { overflow-x: auto; max-width: 100%; width: fit-content; }
.scroll, .formula, .wide { background: linear-gradient(to left, var(--paper) 40%, transparent) right / 2.5rem 100% no-repeat local,
  linear-gradient(to left, var(--shade), transparent) right / 1rem 100% no-repeat scroll; } /* a shade where there is more at the right */
table { border-collapse: separate; border-spacing: 0; font-size: .92rem; line-height: 1.4;
  font-variant-numeric: tabular-nums lining-nums; border-bottom: 1.5px solid var(--ink); }
th, td { padding: .45rem .8rem; text-align: left; vertical-align: baseline; border-top: 1px solid var(--line); }
th { font-weight: 500; }
td { min-width: 4rem; }
td.text { min-width: 7.5rem; }
td.words { min-width: 11rem; }
tr > :first-child { padding-left: .5rem; position: sticky; left: 0; background: var(--paper); min-width: 6.5rem; z-index: 1; }
tr > :last-child { padding-right: .5rem; }
thead th { border-top: 1.5px solid var(--ink); border-bottom: 1px solid var(--ink); font-weight: 600; vertical-align: bottom; }
tbody tr:first-child > * { border-top: 0; }
.table table:not(:has(thead)) { border-top: 1.5px solid var(--ink); }
.number, .word { text-align: right; }
td.number { white-space: nowrap; }
.word { color: var(--soft); }
tr.ours > * { background: var(--ours); font-weight: 600; }
.pad { visibility: hidden; }
figure { margin: 1.8rem 0 2.2rem; }
.panels { display: grid; grid-template-columns: repeat(var(--columns), minmax(0, 1fr)); gap: .9rem 1rem; align-items: start;
  justify-items: stretch; }
.panel { display: block; width: 100%; margin: 0 auto; height: auto; fill: var(--ink); overflow: visible; }
.panel text { font-family: SANS !important; }
figcaption { margin-top: .7rem; }
details { margin: 1rem 0 1.6rem; }
summary { cursor: pointer; color: var(--link); font-weight: 600; padding: .5rem 0; }
iframe { display: block; width: 100%; height: min(92vh, 60rem); border: 1px solid var(--line); border-radius: 8px; }
.facts th { color: var(--soft); white-space: nowrap; }
.facts td { overflow-wrap: anywhere; }
footer { padding-block: 2rem 3rem; color: var(--soft); font-size: .9rem; }
@media (max-width: 42rem) { body { font-size: 1rem; } header { padding-top: 1.6rem; } th, td { padding-inline: .55rem; }
  h2 { margin-top: 2.4rem; } .panels { grid-template-columns: minmax(0, 1fr); } .panels > * { grid-column: auto !important; }
  main, header, footer { padding-inline: 1rem; } .statement { grid-template-columns: minmax(0, 1fr); gap: 0; }
  .statement dd { margin-bottom: .6rem; } .facts th { white-space: normal; }
  table { font-size: .8rem; } th, td { padding-inline: .4rem; } td { min-width: 3rem; } td.words { min-width: 7.5rem; } td.text { min-width: 5rem; } tr > :first-child { min-width: 4.5rem; }
  .wide { overflow-x: auto; } .wide .panel { width: 36rem !important; max-width: none !important; }
  /* words at the end of a row of numbers stand below them */
  .described { display: grid; grid-template-columns: auto repeat(var(--numbers), auto); }
  .described :is(thead, tbody, tr) { display: grid; grid-template-columns: subgrid; grid-column: 1 / -1; }
  .described td:last-child { grid-column: 1 / -1; border-top: 0; padding: 0 .5rem .45rem; color: var(--soft); }
  .described th:last-child:empty { display: none; } .described :is(th, td) { padding-inline: .3rem; min-width: auto; font-size: .95em; } }
@media print { :root { color-scheme: light; --paper: #fff; --ink: #000; --soft: #444; --line: #bbb; --link: #000;
  --ours: #eee; --code: #f4f4f4; --shade: transparent; } body { font-size: 10pt; } main, header, footer { max-width: none; padding: 0; }
  figure, tr, pre { break-inside: avoid; } h2, .caption { break-after: avoid; } details { display: none; }
  .scroll { overflow: visible; } p { orphans: 3; widows: 3; } }
"""

STYLE = (theme_css() + _PAGE + _MATH + _BLOCKS).replace("SERIF", _SERIF).replace("SANS", _SANS).replace("MONO", _MONO)
