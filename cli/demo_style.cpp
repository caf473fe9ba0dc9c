#include "demo_style.h"

namespace halation::demo {

// The colours of the series are those of Okabe and Ito, which colour-blind readers can tell apart.
const char *const report_style = R"css(
:root { color-scheme: light dark;
  --page: #fff; --ink: #1c2024; --soft: #5b6470; --rule: #dfe3e8; --grid: #eceff2; --band: #f6f7f9;
  --c0: #0072b2; --c1: #d55e00; --c2: #00805c; --c3: #a8527f; --c4: #8a6d00; --c5: #5b6470; }
@media (prefers-color-scheme: dark) { :root {
  --page: #14171a; --ink: #e4e7eb; --soft: #9aa4b0; --rule: #343a42; --grid: #252a30; --band: #1b1f24;
  --c0: #56b4e9; --c1: #f08a3c; --c2: #2fc79a; --c3: #d98bb5; --c4: #e0c040; --c5: #9aa4b0; } }
body { margin: 0 auto; max-width: 60rem; padding: 2.5rem 1.25rem 4rem; background: var(--page); color: var(--ink);
  font: 16px/1.55 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif; }
h1 { font-size: 1.7rem; line-height: 1.25; margin: 0 0 .4rem; }
h2 { font-size: 1.2rem; margin: 2.8rem 0 .4rem; padding-top: 1.2rem; border-top: 1px solid var(--rule); }
p { margin: .5rem 0; max-width: 46rem; }
.facts { color: var(--soft); font-size: .92rem; }
figure { margin: 1.1rem 0; }
figure.pair { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 24rem), 1fr)); gap: 1rem; }
figure.pair > div { min-width: 0; }
figcaption { color: var(--soft); font-size: .9rem; max-width: 46rem; grid-column: 1 / -1; }
.scroll { overflow-x: auto; margin: 1rem 0; background:  /* a shadow at an edge beyond which there is more */
  linear-gradient(to right, var(--page) 40%, transparent) 0 0 / 2.5rem 100% no-repeat local,
  linear-gradient(to left, var(--page) 40%, transparent) 100% 0 / 2.5rem 100% no-repeat local,
  linear-gradient(to right, var(--rule), transparent) 0 0 / .9rem 100% no-repeat scroll,
  linear-gradient(to left, var(--rule), transparent) 100% 0 / .9rem 100% no-repeat scroll; }
table { border-collapse: collapse; font-size: .88rem; width: 100%; font-variant-numeric: tabular-nums; }
th { text-align: left; font-weight: 600; vertical-align: bottom; border-bottom: 1.5px solid var(--soft); }
th, td { padding: .3rem .7rem .3rem 0; }
td { border-bottom: 1px solid var(--rule); vertical-align: top; }
th.n, td.n { text-align: right; white-space: nowrap; }
td:first-child { white-space: nowrap; font-weight: 600; }
tr.besides td { color: var(--soft); font-style: italic; font-weight: 400; }
td.list { padding-left: 1rem; white-space: normal; min-width: 15rem; } th.list { padding-left: 1rem; }
td.wide { min-width: 17rem; }
.swatch { display: inline-block; width: .8em; height: .8em; border-radius: 2px; margin: 0 .3em 0 .8em; } .swatch:first-child { margin-left: 0; }
td.missing { color: var(--soft); }
code { font: .92em ui-monospace, "SFMono-Regular", Menlo, Consolas, monospace; }
pre { background: var(--band); padding: .8rem 1rem; border-radius: 6px; overflow-x: auto; line-height: 1.45;
  font: .88rem/1.5 ui-monospace, "SFMono-Regular", Menlo, Consolas, monospace; }
svg { display: block; width: 100%; height: auto; font-family: inherit; }
svg text { fill: var(--ink); font-size: 12px; }
svg .tick { fill: var(--soft); font-size: 11.5px; }
svg .label { fill: var(--soft); font-size: 12px; }
svg .note { font-size: 11.5px; fill: var(--ink); }
svg .value { font-size: 11.5px; } svg .inside { fill: var(--page); font-weight: 600; }
svg .strong { font-weight: 600; font-size: 13px; }
svg .end { text-anchor: end; } svg .middle { text-anchor: middle; }
svg .grid { stroke: var(--grid); } svg .axis { stroke: var(--soft); }
svg .mark { stroke: var(--soft); stroke-dasharray: 4 3; }
svg .ring { fill: none; stroke: var(--ink); stroke-width: 1.5; }
svg .line { fill: none; stroke-width: 2; stroke-linejoin: round; } svg .dashed { stroke-dasharray: 6 4; }
.s0 { stroke: var(--c0); } .s1 { stroke: var(--c1); } .s2 { stroke: var(--c2); }
.s3 { stroke: var(--c3); } .s4 { stroke: var(--c4); } .s5 { stroke: var(--c5); }
.b0 { background: var(--c0); } .b1 { background: var(--c1); } .b2 { background: var(--c2); }
.f0 { fill: var(--c0); } .f1 { fill: var(--c1); } .f2 { fill: var(--c2); }
.f3 { fill: var(--c3); } .f4 { fill: var(--c4); } .f5 { fill: var(--c5); }
@media print { body { max-width: none; } h2 { break-after: avoid; } figure, tr { break-inside: avoid; } }
)css";

}  // namespace halation::demo
