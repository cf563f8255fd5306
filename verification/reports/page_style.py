"""The style of the HTML page: no script, no font, no image; light and dark; prints on paper."""

from __future__ import annotations

from typing import Final

STYLE: Final = """
:root { color-scheme: light dark;
  --paper: #ffffff; --ink: #1c2330; --soft: #5a6474; --line: #d5dae3; --panel: #f5f7fa;
  --good: #16713f; --bad: #b3261e; --warn: #8a5a00; --badpaper: #fdecea; --goodpaper: #e7f4ec;
  --warnpaper: #fbf1dc; --accent: #2455a4;
  --s1: #e4edf9; --s2: #c6daf3; --s3: #9dbfe9; --s4: #6f9fdc; --s5: #4a80c8; --s5ink: #ffffff; }
@media (prefers-color-scheme: dark) { :root {
  --paper: #14181f; --ink: #e4e8ef; --soft: #9aa5b5; --line: #333c49; --panel: #1b212a;
  --good: #6fcf97; --bad: #ff8a80; --warn: #f0c36d; --badpaper: #3a1d1f; --goodpaper: #17301f;
  --warnpaper: #35290f; --accent: #8ab4f8;
  --s1: #1b2a40; --s2: #213a5c; --s3: #294d7d; --s4: #33629f; --s5: #4079c2; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 1040px; padding: 24px 20px 64px; background: var(--paper);
  color: var(--ink); font: 15px/1.5 system-ui, "Segoe UI", Roboto, "Helvetica Neue", sans-serif; }
h1 { font-size: 15px; font-weight: 600; color: var(--soft); margin: 0 0 8px; }
h2 { font-size: 20px; margin: 44px 0 12px; padding-top: 12px; border-top: 1px solid var(--line); }
h3 { font-size: 15px; margin: 24px 0 8px; }
p { margin: 6px 0; max-width: 76ch; }
code, pre, .mono { font: 13px/1.5 ui-monospace, "SF Mono", Menlo, Consolas, "DejaVu Sans Mono",
  monospace; }
.verdict { padding: 18px 22px; border-radius: 8px; border-left: 8px solid; }
.verdict strong { display: block; font-size: 28px; line-height: 1.25; }
.verdict.good { background: var(--goodpaper); border-color: var(--good); }
.verdict.good strong { color: var(--good); }
.verdict.bad { background: var(--badpaper); border-color: var(--bad); }
.verdict.bad strong { color: var(--bad); }
.verdict.warn { background: var(--warnpaper); border-color: var(--warn); }
.verdict.warn strong { color: var(--warn); }
.rule { font-weight: 600; } .said { white-space: pre-line; } .soft { color: var(--soft); }
table { border-collapse: collapse; width: 100%; }
th[scope=row] { white-space: nowrap; }
th, td { text-align: left; vertical-align: top; padding: 6px 10px; border-bottom: 1px solid
  var(--line); } thead th { color: var(--soft); font-weight: 600; font-size: 13px; }
td.number, th.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
.status { font-weight: 600; white-space: nowrap; } .status.good { color: var(--good); }
.status.bad { color: var(--bad); } .status.warn { color: var(--warn); }
.scroll { overflow-x: auto; }
.answers { display: grid; grid-template-columns: 1fr 1fr; gap: 16px; }
@media (max-width: 760px) { .answers { grid-template-columns: 1fr; } }
.answers h3 { margin: 12px 0 6px; }
pre { margin: 0; padding: 12px 14px; background: var(--panel); border: 1px solid var(--line);
  border-radius: 6px; white-space: pre-wrap; overflow-wrap: anywhere; }
pre mark { display: block; margin: 0 -14px; padding: 0 14px; color: inherit; font-weight: 600;
  background: var(--badpaper); box-shadow: inset 4px 0 var(--bad); }
pre.right mark { background: var(--goodpaper); box-shadow: inset 4px 0 var(--good); }
details { margin: 14px 0; } summary { cursor: pointer; color: var(--accent); }
svg { max-width: 100%; height: auto; margin: 12px 0; } ol.story { max-width: 90ch; }
table.heat { width: auto; } table.heat th { font-weight: 500; font-size: 12px; padding: 4px 6px; }
table.heat td { text-align: right; font-size: 12px; padding: 4px 6px; border: 1px solid var(--line);
  font-variant-numeric: tabular-nums; } table.heat tbody th { white-space: nowrap; }
.shade1 { background: var(--s1); } .shade2 { background: var(--s2); }
.shade3 { background: var(--s3); } .shade4 { background: var(--s4); }
.shade5 { background: var(--s5); color: var(--s5ink); }
.never { color: var(--bad); font-weight: 600; outline: 1px dashed var(--bad);
  outline-offset: -2px; }
td.none { background: repeating-linear-gradient(135deg, transparent 0 5px, var(--panel) 5px 7px); }
ul.counts { list-style: none; margin: 0; padding: 0; display: grid; gap: 4px;
  grid-template-columns: repeat(auto-fill, minmax(230px, 1fr)); }
ul.counts li { display: flex; justify-content: space-between; gap: 12px; padding: 3px 10px;
  border-radius: 4px; font-variant-numeric: tabular-nums; }
ul.counts span { overflow-wrap: anywhere; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: 4px 20px; margin: 0; }
dt { color: var(--soft); } dd { margin: 0; overflow-wrap: anywhere; }
@media print { body { max-width: none; padding: 0; font-size: 11px; } h2, h3 {
  break-after: avoid; } .answers, tr, svg { break-inside: avoid; } * {
  print-color-adjust: exact; -webkit-print-color-adjust: exact; } }
"""
