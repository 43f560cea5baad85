import re
bib = str(tools.filesystem.read_file(path="/root/txt/paper_list.bib"))
d = tools.word_document_server
name = "/root/word/paper_list.docx"
d.create_document(filename=name, title="References")
d.add_paragraph(filename=name, text="References", style="Heading 1")
def field(entry, key):
    m = re.search(key + r"\s*=\s*[{\"](.*?)[}\"]\s*,?\s*\n", entry, re.S | re.I)
    return m.group(1).strip() if m else ""
def person(n):
    last, _, first = n.partition(",") if "," in n else (n.split()[-1], "", " ".join(n.split()[:-1]))
    return f"{last.strip()}, " + " ".join(w[0] + "." for w in first.split())
references = []
for e in re.findall(r"@\w+\{.*?\n\}", bib, re.S):
    names = [person(n) for n in re.split(r"\s+and\s+", field(e, "author")) if n]
    who = names[0] if len(names) == 1 else ", ".join(names[:-1]) + ", & " + names[-1] if names else ""
    where = field(e, "journal") or field(e, "booktitle")
    references.append(f"{who} ({field(e, 'year')}). {field(e, 'title')}. {where}.")
for r in sorted(references):
    d.add_paragraph(filename=name, text=r)
print("\n".join(sorted(references)))
