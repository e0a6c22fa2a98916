"""How the page looks. Colours are Okabe and Ito's, which colour-blind people can tell apart; shape
or text says the same again.
"""

CSS = """
:root{--ink:#1b1f24;--soft:#5c6670;--line:#dfe3e8;--paper:#fff;--back:#f5f6f8;--ok:#0072b2;
--fail:#d55e00;--unknown:#7a5195;--band:#e69f0033}
*{box-sizing:border-box}
body{margin:0;background:var(--back);color:var(--ink);
font:15px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,"DejaVu Sans",sans-serif}
main{max-width:1180px;margin:0 auto;padding:24px 20px 60px}
h1{margin:0;font-size:26px}
h2{margin:32px 0 8px;font-size:19px}
h3{margin:22px 0 6px;font-size:15px}
p{margin:6px 0}
header{background:var(--paper);border:1px solid var(--line);border-left:8px solid var(--soft);
border-radius:6px;padding:16px 20px}
header.pass{border-left-color:#009e73}
header.fail,header.error{border-left-color:var(--fail)}
header p{margin:6px 0 0}
header .verdict{margin:0;font-weight:700;text-transform:uppercase;letter-spacing:.06em;
font-size:16px;color:var(--soft)}
header.pass .verdict{color:#00674b}
header.fail .verdict,header.error .verdict{color:#a34700}
.drilled{color:var(--soft)}
.torn{font-weight:600}
.story{margin:0;padding:0;list-style:none}
.when{display:inline-block;min-width:76px;padding-right:12px;text-align:right;color:var(--soft);
font-variant-numeric:tabular-nums}
.counts{display:flex;flex-wrap:wrap;gap:10px;margin:14px 0 0}
.counts div{background:var(--paper);border:1px solid var(--line);border-radius:6px;
padding:8px 14px;min-width:104px}
.counts dt{color:var(--soft);font-size:13px}
.counts dd{margin:0;font-size:21px;font-variant-numeric:tabular-nums}
figure{margin:0;background:var(--paper);border:1px solid var(--line);border-radius:6px;
padding:10px 8px 4px}
svg{display:block;width:100%;height:auto;font:12px system-ui,"DejaVu Sans",sans-serif}
.hidden{position:absolute;width:0;height:0}
.legend,figcaption{color:var(--soft);font-size:13px}
figcaption{margin:0 8px 8px}
.key:not(:first-child),.swatch:not(:first-child){margin-left:12px}
.swatch{display:inline-block;width:14px;height:11px;border:1px solid var(--line)}
.swatch.ok{background:var(--ok)}
.swatch.fail{background:repeating-linear-gradient(135deg,var(--fail) 0 3px,#fff 3px 4px)}
.swatch.unknown{background:radial-gradient(#fff 1.2px,var(--unknown) 1.6px) 0 0/5px 5px}
.key.ok{color:var(--ok)}.key.fail{color:var(--fail)}
.key.unknown{color:var(--unknown)}.key.band{color:#e69f00}
.grid{stroke:var(--line)}
.axis{fill:var(--soft);font-size:11px}
.lane{fill:var(--ink)}
.beside{fill:var(--ink);font-size:11px;font-weight:600}
.onbar{fill:#fff;font-size:11px;font-weight:600}
.band{fill:var(--band)}
rect.fault{fill:#a34700}
rect.phase{fill:#5c6670}
rect.reign{fill:#00674b}
rect.leader0{fill:#005a8e}rect.leader1{fill:#7a4b00}rect.leader2{fill:#5b3a73}
rect.leader3{fill:#006b4e}rect.leader4{fill:#8a2f5c}rect.leader5{fill:#4a5560}
rect.short{stroke:#fff;stroke-width:3;stroke-dasharray:6 4}
rect.nobody{fill:#1b1f24}
circle.ok{fill:var(--ok);fill-opacity:.55}
path.fail{stroke:var(--fail);stroke-width:2.4;fill:none}
path.unknown{fill:var(--unknown)}
.column.ok{fill:var(--ok)}.column.unseen{fill:#4a5560}
.column.fail{fill:url(#stripes)}.column.unknown{fill:url(#spots)}
pattern .fail{fill:var(--fail)}pattern .unknown{fill:var(--unknown)}
pattern .gap{stroke:#fff;stroke-width:1.2;fill:#fff}
details{margin:6px 0 0}
summary{cursor:pointer;color:var(--soft);font-size:13px}
table{border-collapse:collapse;width:100%;background:var(--paper);margin:6px 0;font-size:13px;
font-variant-numeric:tabular-nums}
th,td{border:1px solid var(--line);padding:4px 8px;text-align:left;vertical-align:top;
overflow-wrap:anywhere}
th{background:var(--back);font-weight:600}
h2+table :is(th,td):nth-child(4){overflow-wrap:normal;white-space:nowrap}
pre{margin:0;white-space:pre-wrap;overflow-wrap:anywhere;font-size:12px}
@media print{details::details-content{content-visibility:visible}body{background:#fff}}
"""
