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
h2{margin:28px 0 8px;font-size:17px}
header{background:var(--paper);border:1px solid var(--line);border-left:8px solid var(--soft);
border-radius:6px;padding:16px 20px}
header.pass{border-left-color:#009e73}
header.fail,header.error{border-left-color:var(--fail)}
header p{margin:6px 0 0}
header .verdict{margin:0;font-weight:700;text-transform:uppercase;letter-spacing:.06em;
font-size:13px;color:var(--soft)}
header.pass .verdict{color:#00674b}
header.fail .verdict,header.error .verdict{color:#a34700}
.counts{display:flex;flex-wrap:wrap;gap:10px;margin:14px 0 0}
.counts div{background:var(--paper);border:1px solid var(--line);border-radius:6px;
padding:8px 14px;min-width:104px}
.counts dt{color:var(--soft);font-size:13px}
.counts dd{margin:0;font-size:21px;font-variant-numeric:tabular-nums}
figure{margin:0;background:var(--paper);border:1px solid var(--line);border-radius:6px;
padding:10px 8px 4px}
svg{display:block;width:100%;height:auto;font:12px system-ui,"DejaVu Sans",sans-serif}
.legend{margin:0 0 6px 8px;color:var(--soft);font-size:13px}
.key{margin-left:12px}
.key.ok{color:var(--ok)}.key.fail{color:var(--fail)}
.key.unknown{color:var(--unknown)}.key.band{color:#e69f00}
.grid{stroke:var(--line)}
.axis{fill:var(--soft);font-size:11px}
.lane{fill:var(--ink)}
.onbar{fill:#fff;font-size:11px;font-weight:600}
.band{fill:var(--band)}
rect.fault{fill:#a34700}
rect.reign{fill:#00674b}
rect.leader0{fill:#005a8e}rect.leader1{fill:#7a4b00}rect.leader2{fill:#5b3a73}
rect.leader3{fill:#006b4e}rect.leader4{fill:#8a2f5c}rect.leader5{fill:#4a5560}
rect.nobody{fill:#1b1f24}
circle.ok{fill:var(--ok);fill-opacity:.55}
path.fail{stroke:var(--fail);stroke-width:2.4;fill:none}
path.unknown{fill:var(--unknown)}
.column.ok{fill:var(--ok)}.column.fail{fill:var(--fail)}.column.unknown{fill:var(--unknown)}
details{margin:6px 0 0}
summary{cursor:pointer;color:var(--soft);font-size:13px}
table{border-collapse:collapse;width:100%;background:var(--paper);margin:6px 0;font-size:13px;
font-variant-numeric:tabular-nums}
th,td{border:1px solid var(--line);padding:4px 8px;text-align:left;vertical-align:top;
overflow-wrap:anywhere}
th{background:var(--back);font-weight:600}
pre{margin:0;white-space:pre-wrap;overflow-wrap:anywhere;font-size:12px}
@media print{details{display:block}body{background:#fff}}
"""
