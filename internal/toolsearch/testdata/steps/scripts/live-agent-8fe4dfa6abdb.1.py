import re
cards = str(tools.ygocdb.search_cards(query="青眼白龙"))
print(cards[:1200])
ids = re.findall(r"\d{6,9}", cards)
if ids:
    print(tools.ygocdb.get_card_image(id=ids[0]))
