s = tools.searxng
pdfs = []
for name in ("CV", "Report_Card"):
    pdfs.append(f"/root/pdf/{name}.pdf")
    s.docx_to_pdf(inputPath=f"/root/word/{name}.docx", outputPath=pdfs[-1])
print(s.pdf_merger(inputPaths=pdfs, outputDir="/root/pdf"))
