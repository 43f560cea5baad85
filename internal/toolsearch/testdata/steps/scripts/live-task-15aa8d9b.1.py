import re
w = tools.playwright
w.playwright_navigate(url="https://www.amazon.com", headless=True)
w.playwright_fill(selector="#twotabsearchtextbox", value="34 inch curved monitor")
w.playwright_click(selector="#nav-search-submit-button")
html = str(w.playwright_get_visible_html(cleanHtml=True))
for link, name in re.findall(r'<a[^>]+href="([^"]*/dp/[^"]*)"[^>]*>(.*?)</a>', html, re.S):
    print(re.sub(r"<[^>]+>|\s+", " ", name).strip()[:120], link.split("/ref")[0])
text = re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", html))
print(re.findall(r"\$[\d,]+\.\d\d", text)[:20])
