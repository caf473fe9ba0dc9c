#include "parts.h"

namespace halation::lab::report {

// The look of the demonstration's report (cli/demo_style.cpp), closer set. Colours are those of Okabe and Ito, which
// colour-blind readers can tell apart. `paper`: what the script sets while it prints, for canvases are drawn, not styled.
const char *const style = R"css(
:root { color-scheme: light dark;
  --page: #fff; --ink: #1c2024; --soft: #5b6470; --rule: #dfe3e8; --grid: #eceff2; --band: #f6f7f9;
  --points: #5b6470; --line: #0072b2; --best: #00805c; --shipped: #b84a00; --chosen: #a0408a;
  --faster: 0 114 178; --slower: 213 94 0; }
@media (prefers-color-scheme: dark) { :root:not(.paper) {
  --page: #14171a; --ink: #e4e7eb; --soft: #9aa4b0; --rule: #343a42; --grid: #252a30; --band: #1b1f24;
  --points: #9aa4b0; --line: #56b4e9; --best: #2fc79a; --shipped: #f08a3c; --chosen: #e08fd0;
  --faster: 58 130 190; --slower: 190 100 30; } }
:root.paper { color-scheme: light; }
* { box-sizing: border-box; }
[hidden] { display: none !important; }
body { margin: 0 auto; max-width: 82rem; padding: 1.6rem 1.25rem 5rem; background: var(--page); color: var(--ink);
  font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif; }
h1 { font-size: 1.5rem; line-height: 1.25; margin: 0 0 .5rem; overflow-wrap: anywhere; }
h2 { font-size: 1.12rem; margin: 2rem 0 .3rem; padding-top: .9rem; border-top: 1px solid var(--rule); }
h3 { font-size: .88rem; font-weight: 600; margin: 0; overflow-wrap: anywhere; }
p { margin: .4rem 0; max-width: 52rem; overflow-wrap: anywhere; }
.verdict { font-size: 1.05rem; }
.facts, figcaption, small, .legend { color: var(--soft); font-size: .86rem; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .05rem .9rem; margin: 0; }
dt, dd { margin: 0; } dd { color: var(--ink); overflow-wrap: anywhere; }
footer { margin-top: 2.5rem; border-top: 1px solid var(--rule); }
figure { margin: 0; min-width: 0; }
.tables { display: flex; flex-wrap: wrap; gap: 0 3rem; align-items: start; }
.tables > div { max-width: 100%; }
.multiples { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 17rem), 1fr)); gap: 1.2rem 1.4rem; margin-top: .6rem; }
.pair { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 26rem), 1fr)); gap: 1.4rem; margin-top: .5rem; }
.pair figure + figure { margin: 0; }
.plot { position: relative; height: 13.5rem; min-width: 0; } .plot.tall { height: 19rem; }
.legend { display: flex; flex-wrap: wrap; gap: .1rem 1.3rem; max-width: none; }
.legend span { white-space: nowrap; } .legend i { display: inline-block; width: .62rem; height: .62rem; margin-right: .45rem; }
.dot { background: var(--points); opacity: .6; border-radius: 50%; }
.legend .rule { width: 1.3rem; height: 0; border-top: 2px solid var(--line); vertical-align: .25rem; }
.legend .dashes { width: 1.3rem; height: 0; border-top: 1px dashed var(--soft); vertical-align: .25rem; }
.diamond { background: var(--best); transform: rotate(45deg) scale(.85); } .square { background: var(--shipped); }
.legend .ring { border: 2px solid var(--chosen); border-radius: 50%; width: .8rem; height: .8rem; vertical-align: -.1rem; }
.scroll { overflow-x: auto; margin: .6rem 0; }
.scroll.tall { max-height: 38rem; overflow: auto; border: 1px solid var(--rule); border-radius: 4px; }
table { border-collapse: collapse; font-size: .84rem; line-height: 1.4; font-variant-numeric: tabular-nums; }
th, td { padding: .16rem .9rem .16rem 0; text-align: left; vertical-align: top; border-bottom: 1px solid var(--rule); }
th { font-weight: 600; } tbody th { font-weight: 400; }
thead th { vertical-align: bottom; border-bottom-color: var(--soft); }
th.n, td.n { text-align: right; white-space: nowrap; } thead th.n { white-space: normal; }
.figures thead th { white-space: nowrap; }
#table { width: 100%; } #table th:first-child { padding-left: .5rem; }
#table thead th { position: sticky; top: 0; background: var(--page); box-shadow: inset 0 -1px var(--soft); z-index: 1; }
#table tbody tr:hover { background: var(--band); }
#table tr.chosen { background: var(--band); box-shadow: inset 4px 0 var(--chosen); } #table tr.chosen th { font-weight: 700; }
#table .status { white-space: nowrap; } #table .reason { min-width: 14rem; max-width: 32rem; overflow-wrap: anywhere; white-space: pre-line; }
details[open] .more { display: none; }
.tag { font-weight: 600; font-size: .76rem; border: 1px solid var(--soft); border-radius: 3px; padding: 0 .3em; }
button { font: inherit; color: inherit; background: none; border: 0; padding: 0; cursor: pointer; text-align: inherit; }
thead button { font-weight: 600; } tbody th button { text-decoration: underline dotted; text-underline-offset: .2em; }
thead button:hover { text-decoration: underline; }
[aria-sort=ascending] button::after { content: " ↑"; } [aria-sort=descending] button::after { content: " ↓"; }
select, input { font: inherit; font-size: .88rem; color: var(--ink); background: var(--page); border: 1px solid var(--soft); border-radius: 4px; padding: .12rem .35rem; max-width: 100%; }
input[type=search] { width: 20rem; }
.control { font-size: .88rem; }
:focus-visible { outline: 2px solid var(--line); outline-offset: 2px; }
#grid table { font-size: .82rem; } #grid caption { text-align: left; color: var(--soft); padding-bottom: .3rem; }
#grid th, #grid td { border: 2px solid var(--page); padding: 0; text-align: center; vertical-align: middle; }
#grid th { padding: .2rem .6rem; }
#grid td { min-width: 4.6rem; height: 2.1rem; background: var(--band); color: var(--soft); }
#grid td.faster { background: rgb(var(--faster) / calc(var(--share) * .5)); } #grid td.slower { background: rgb(var(--slower) / calc(var(--share) * .5)); }
#grid td button { width: 100%; height: 2.1rem; text-align: center; color: var(--ink); padding: 0 .5rem; white-space: nowrap; }
#grid td.chosen button { outline: 2px solid var(--chosen); outline-offset: -2px; font-weight: 700; }
details > summary { cursor: pointer; } figure details, .why { font-size: .84rem; color: var(--soft); } .why ul { margin: .3rem 0; }
.why li { overflow-wrap: anywhere; max-width: 60rem; }
#tip { position: fixed; z-index: 3; pointer-events: none; max-width: min(24rem, 92vw); }
#tip, #chosen { background: var(--page); color: var(--ink); border: 1px solid var(--soft); border-radius: 4px; padding: .4rem .65rem;
  font-size: .82rem; line-height: 1.4; white-space: pre-line; box-shadow: 0 2px 10px rgb(0 0 0 / .18); overflow-wrap: anywhere; }
#chosen { position: fixed; z-index: 2; left: 50%; bottom: .6rem; transform: translateX(-50%); width: max-content;
  max-width: min(78rem, calc(100vw - 1.5rem)); border-color: var(--chosen); border-width: 2px; }
#chosen button { text-decoration: underline; margin-left: .9rem; }
.nests { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 30rem), 1fr)); gap: 1rem; margin-top: .6rem; }
.nests > div { min-width: 0; }
pre { background: var(--band); margin: .3rem 0; padding: .6rem .8rem; border-radius: 4px; overflow-x: auto; font: .8rem/1.45 ui-monospace, "SFMono-Regular", Menlo, Consolas, monospace; }
code { font: .95em ui-monospace, "SFMono-Regular", Menlo, Consolas, monospace; }
.line { display: block; width: max-content; min-width: 100%; padding-left: 1.4em; text-decoration: none; position: relative; }
del.line { background: rgb(var(--slower) / .2); } ins.line { background: rgb(var(--faster) / .2); }
del.line::before, ins.line::before { position: absolute; left: .25em; } del.line::before { content: "−"; } ins.line::before { content: "+"; }
@media (max-width: 62rem) { .gap { display: none; } }
@media (max-width: 30rem) { body { padding: 1rem .8rem 5rem; } dl { grid-template-columns: 1fr; gap: 0; } dt { margin-top: .2rem; }
  th, td { padding-right: .6rem; } input[type=search] { width: 100%; } }
@media print { body { max-width: none; padding: 0; font-size: 12px; } h2, h3 { break-after: avoid; } figure, tr, .figures { break-inside: avoid; }
  .scroll, .scroll.tall { max-height: none; overflow: visible; border: 0; } #table thead th { position: static; box-shadow: none; } #table { font-size: .7rem; }
  #table .reason { min-width: 0; } .control, #tip, #chosen, figure details { display: none; } pre { white-space: pre-wrap; font-size: .68rem; }
  .line { width: auto; } td, ins, del, i { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
  .multiples { grid-template-columns: repeat(3, 1fr); } .pair { grid-template-columns: 1fr 1fr; } }
)css";

// Its file names the licence; the licence wants to be in all copies.
const char *const chart_js_terms = R"html(<!-- The script that follows is Chart.js. Copyright (c) Chart.js Contributors.

Permission is hereby granted, free of charge, to any person obtaining a copy of this software and associated documentation
files (the "Software"), to deal in the Software without restriction, including without limitation the rights to use, copy,
modify, merge, publish, distribute, sublicense, and/or sell copies of the Software, and to permit persons to whom the
Software is furnished to do so, subject to the following conditions:

The above copyright notice and this permission notice shall be included in all copies or substantial portions of the Software.

THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR IMPLIED, INCLUDING BUT NOT LIMITED TO THE
WARRANTIES OF MERCHANTABILITY, FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE AUTHORS OR
COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR OTHERWISE,
ARISING FROM, OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE SOFTWARE. -->
)html";

}  // namespace halation::lab::report
