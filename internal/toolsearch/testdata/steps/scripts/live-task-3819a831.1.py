import re
w = tools.playwright
w.playwright_navigate(url="https://www.amazon.com", headless=True)
w.playwright_fill(selector="#twotabsearchtextbox", value="apple iphone")
w.playwright_click(selector="#nav-search-submit-button")
w.playwright_screenshot(name="iphone", storeBase64=False, savePng=True)
html = str(w.playwright_get_visible_html(cleanHtml=True))
text = re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", html))
for m in re.finditer(r"\$[\d,]+\.\d\d", text):
    print(text[max(0, m.start() - 120):m.end()])
