import re
rank = str(tools.trends_hub.get_douban_rank(count=20))
items = re.findall(r"<title>(.*?)</title>.*?<description>(.*?)</description>", rank, re.S)
d = tools.word_document_server
name = "/root/pdf/douban_report.docx"
d.create_document(filename=name, title="Douban trends")
d.add_paragraph(filename=name, text="What is popular on Douban", style="Heading 1")
for i, (title, text) in enumerate(items[:10], 1):
    d.add_paragraph(filename=name, text=f"{i}. {title}: {text[:80]}")
print(d.convert_to_pdf(filename=name, output_filename="/root/pdf/douban_report.pdf"))
print([t for t, _ in items[:10]])
