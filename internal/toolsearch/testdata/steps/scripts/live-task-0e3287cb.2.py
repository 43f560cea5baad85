import re
rank = str(tools.trends_hub.get_weread_rank(category="rising"))
books = re.findall(r"<title>(.*?)</title>.*?<description>(.*?)</description>", rank, re.S)
words = [{"text": title, "value": len(books) - i} for i, (title, _) in enumerate(books)]
cloud = str(tools.mcp_server_chart.generate_word_cloud_chart(data=words, title="WeChat Reading trends"))
doc = tools.word_document_server
name = "/root/pdf/wechat_reading_report.docx"
doc.create_document(filename=name, title="WeChat Reading report")
doc.add_paragraph(filename=name, text="WeChat Reading: the rising books", style="Heading 1")
doc.add_paragraph(filename=name, text="\n".join(f"{i}. {t}: {d[:60]}" for i, (t, d) in enumerate(books[:10], 1)))
doc.add_picture(filename=name, image_path=cloud)
print(doc.convert_to_pdf(filename=name, output_filename="/root/pdf/wechat_reading_report.pdf"))
print([t for t, _ in books[:10]])
