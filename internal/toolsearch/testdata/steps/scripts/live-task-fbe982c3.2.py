d = tools.word_document_server
name = "/root/word/nio.docx"
d.create_document(filename=name, title="NIO Company Overview")
for text, style in [
    ("NIO Company Overview", "Title"),
    ("Introduction", "Heading 1"),
    ("NIO Inc. is a Chinese maker of electric cars with its seat in Shanghai, founded in 2014 by William Li. It is known for its network of "
     "stations that swap batteries, and is listed in New York, Hong Kong and Singapore.", None),
    ("News", "Heading 1"),
    ("The second brand ONVO began deliveries of its first family car, the L60.", "List Bullet"),
    ("Deliveries of the quarter reached a new record of 61,855 cars.", "List Bullet"),
    ("The small brand Firefly was announced for Europe.", "List Bullet"),
    ("Models", "Heading 1"),
    ("ET5, ET5T, ET7, ET9, ES6, ES7, ES8, EC6, EC7", None),
]:
    d.add_paragraph(filename=name, text=text, **({"style": style} if style else {}))
print("written", name)
